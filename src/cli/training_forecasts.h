#pragma once

#include <string>

#include "evidence/training/training_validation.h"

namespace stoker::cli {

/// Forecasts measured runs as `stoker predict` would with the same settings, on `machine`: what --gpu
/// takes. Made-up samples and the user's loader alike: the input is not part of a step.
[[nodiscard]] Forecaster forecaster_on(std::string machine);

}  // namespace stoker::cli
