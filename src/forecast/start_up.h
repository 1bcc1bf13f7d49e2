#pragma once

#include <vector>

#include "forecast/run_time.h"

/// Internal to src/forecast.
namespace stoker {

/// What a run pays once and what its first epoch pays more than the others, in order.
[[nodiscard]] std::vector<RunPart> start_up_parts(const Scenario& scenario, const Program& program,
                                                  const Forecast& forecast);

}  // namespace stoker
