#pragma once

#include <string>

#include "evidence/training/training_validation.h"
#include "scenario/request/request.h"
#include "scenario/sources/tools.h"

namespace stoker {

/// The request that repeats a measured run on `machine`. `cpu`: that machine is one. Made-up
/// samples and the user's loader alike: the input is not part of a step.
[[nodiscard]] Result<RunRequest> request_of(const MeasuredRun& run, const std::string& machine,
                                            bool cpu);

/// Forecasts measured runs as `stoker predict` would with the same settings, on `machine`: a GPU's
/// name, "cpu" or a machine file.
[[nodiscard]] Forecaster forecaster_on(std::string machine, ScenarioTools tools);

}  // namespace stoker
