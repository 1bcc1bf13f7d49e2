#pragma once

#include <string>

#include "forecast/forecast.h"

namespace stoker {

/// What of the host a loader would overrun (/dev/shm, DRAM) and the cure; empty when it is content.
[[nodiscard]] std::string host_shortage(const Host& host, const LoaderForecast& loader);

/// By how much a GPU is too small for the smallest batch, and what would help.
[[nodiscard]] std::string gpu_shortage(const Scenario& scenario, const BatchLimits& limits);

}  // namespace stoker
