#pragma once

#include "cli/arguments.h"

namespace stoker::cli {

[[nodiscard]] Command plan_command();
[[nodiscard]] Command predict_command();
[[nodiscard]] Command probe_command();
[[nodiscard]] Command capture_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command models_command();
[[nodiscard]] Command gpus_command();
[[nodiscard]] Command fit_command();
[[nodiscard]] Command validate_command();
[[nodiscard]] Command calibrate_command();

}  // namespace stoker::cli
