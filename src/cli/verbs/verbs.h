#pragma once

#include <vector>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

[[nodiscard]] Command plan_command();
[[nodiscard]] Command predict_command();
[[nodiscard]] Command probe_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command watch_command();
[[nodiscard]] Command models_command();
[[nodiscard]] Command gpus_command();
[[nodiscard]] Command machine_command();
[[nodiscard]] Command fit_command();
[[nodiscard]] Command validate_command();
[[nodiscard]] Command calibrate_command();
[[nodiscard]] Command sweep_command();
[[nodiscard]] Command study_command();
[[nodiscard]] Command tune_command();
[[nodiscard]] Command run_trial_command();
[[nodiscard]] Command settings_command();
[[nodiscard]] Command completion_command();
[[nodiscard]] Command page_command();

/// Everything that a user can type, under what it is for.
[[nodiscard]] std::vector<Section> all_verbs();

}  // namespace stoker::cli
