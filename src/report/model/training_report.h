#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "evidence/training/accuracy_log.h"
#include "evidence/training/learning.h"
#include "evidence/training/training_validation.h"

namespace stoker {

/// What stands around a validation of training steps.
struct TrainingSaid {
  std::string version;        ///< of stoker
  std::string device;         ///< that was measured
  std::string machine;        ///< as it was named; "" where the device's own facts served
  bool machine_file = false;  ///< `machine` is one: it can be calibrated and can learn
  bool calibrated = false;
  bool complete = true;                    ///< everything that was asked for was measured
  bool rows_given = false;                 ///< nothing was measured now
  std::string rule;                        ///< of the measuring
  std::vector<std::string> measured_with;  ///< "torch 2.13.0"
  std::optional<Learning> learning;        ///< asked for with --learn
  std::string learned_into;                ///< the file that was written
  Diagnostics data;
};

[[nodiscard]] std::string training_validation_text(const TrainingValidation& validation,
                                                   const TrainingSaid& said);
[[nodiscard]] std::string training_validation_json(const TrainingValidation& validation,
                                                   const TrainingSaid& said);

/// The accuracy log: entries oldest first, and the errors by model and figure.
[[nodiscard]] std::string accuracy_text(const std::vector<AccuracyEntry>& entries,
                                        const std::filesystem::path& log);
[[nodiscard]] std::string accuracy_json(const std::vector<AccuracyEntry>& entries,
                                        const std::filesystem::path& log,
                                        const std::string& version);

}  // namespace stoker
