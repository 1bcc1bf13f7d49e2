#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "study/definition/study.h"

namespace stoker::study {

/// One command with one set of values: what a trial is before it runs.
struct TrialValues {
  std::vector<std::string> values;  ///< of axis_names(study), in their order
  std::int64_t repetition = 0;      ///< from 0
  std::int64_t seed = 0;
};

/// The trials of a study, in the order in which they are to run as far as values alone decide it
/// (Order::kCheapest leaves them as written). Refused: too many combinations, with their number;
/// conditions that leave none.
[[nodiscard]] Result<std::vector<TrialValues>> trials_of(const Study& study);

/// What a trial asks of an executor; 0: not said.
struct Needs {
  int cores = 0;
  int gpus = 0;
  std::int64_t memory_bytes = 0;
  double seconds = 0;
  double grace_seconds = 10;
  std::string constraint{}, image{};                   ///< of batch systems
  std::map<std::string, std::string> node_selector{};  ///< of Kubernetes

  bool operator==(const Needs&) const = default;
};

/// The settings of `stoker predict` that a trial's forecast is of, filled.
[[nodiscard]] Result<std::map<std::string, std::string>> forecast_settings(
    const Study& study, const TrialValues& trial);

/// A trial as it is run.
struct TrialCommand {
  std::vector<std::string> words;  ///< with a shell in front where the study asks for one
  std::vector<std::pair<std::string, std::string>> environment;
  std::string folder;  ///< in which it starts
  Needs needs;
};

/// `number` and `trial_folder` are what {trial} and {folder} stand for.
[[nodiscard]] Result<TrialCommand> command_of(const Study& study, const TrialValues& trial,
                                              std::int64_t number, const std::string& trial_folder);

}  // namespace stoker::study
