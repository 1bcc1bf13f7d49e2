#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "study/definition/study.h"
#include "study/definition/trials.h"
#include "study/trial/trial_files.h"

namespace stoker::study {

/// What `stoker run-trial FOLDER` reads from the folder: the command and its limits.
struct TrialSpec {
  std::int64_t trial = 0;
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string folder{};  ///< in which the command starts; empty: that of the runner
  Needs needs{};
  std::vector<int> cores{};  ///< processors that it may use; empty: any
  std::vector<Metric> metrics{};
  std::int64_t output_bytes = 64LL << 20;  ///< kept of each stream
  double heartbeat_seconds = 5;
  /// Name of the folder, beside the trial's own, that all attempts at a trial share; empty: none.
  std::string checkpoints{};
};

[[nodiscard]] std::string spec_text(const TrialSpec& spec);
/// Into the trial's folder, without waiting for the disk: a spec that a power cut takes belongs to
/// a trial that nobody has begun.
[[nodiscard]] Status write_spec(const TrialFiles& files, const TrialSpec& spec);
[[nodiscard]] Result<TrialSpec> parse_spec(std::string_view text, const std::string& where);

}  // namespace stoker::study
