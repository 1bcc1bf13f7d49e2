#pragma once

#include "base/figure.h"

namespace stoker {

struct Forecast;

/// GPU-hours of a job that keeps `gpus` (those of all nodes) for so many seconds. A rented GPU
/// costs whether it computes or waits, so waiting and start-up count.
[[nodiscard]] Figure gpu_hours(const Figure& seconds, int gpus);

/// GPU-hours and, where the price of one is known, money: of an epoch and of a run. What is unknown
/// stays 0. `forecast` has its job, price, epoch_s and run already.
void add_cost(Forecast& forecast);

}  // namespace stoker
