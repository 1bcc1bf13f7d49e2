#pragma once

#include "forecast/forecast.h"

namespace stoker {

/// What the loader of one rank costs, each figure with its band. Times and loads move with the rate
/// at which samples are prepared, and so does their band; sizes in bytes.
struct InputFigures {
  Figure wait_ms, first_batch_ms, epoch_start_ms;
  Figure worker_utilization, cores_used, cached_share;
  Figure shared_memory, pinned_memory, worker_memory;
};

/// The figures of an input about which something is known.
[[nodiscard]] InputFigures input_figures(const InputForecast& input);

}  // namespace stoker
