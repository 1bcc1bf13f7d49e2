#include "forecast/input_figures.h"

#include <algorithm>

namespace stoker {
namespace {

/// A worker's private memory depends on what the user's data set holds.
constexpr Band kWorkerMemoryBand{0.5, 1.0};
constexpr const char* kByTheRules = "exact by the loader's rules";

}  // namespace

InputFigures input_figures(const InputForecast& input) {
  const LoaderForecast& l = input.loader;
  const Figure& rate = input.samples_per_s;
  const auto as_rate = [&rate](double value) {
    return Figure{value, value * rate.low / rate.value, value * rate.high / rate.value, rate.basis};
  };
  // Starting workers moves with the machine, not with what samples cost.
  const auto as_start = [&](Nanos whole) {
    const Nanos start = std::min(whole, l.started);
    Figure figure = as_rate(milliseconds(whole - start));
    figure.value += milliseconds(start);
    figure.low += (1 - l.started_band.below) * milliseconds(start);
    figure.high += (1 + l.started_band.above) * milliseconds(start);
    return figure;
  };
  const auto bytes = [](Bytes size) { return static_cast<double>(size.count()); };
  return {.wait_ms = as_rate(milliseconds(l.wait)),
          .first_batch_ms = as_start(l.first_batch),
          .epoch_start_ms = l.epoch_start == l.first_batch ? as_start(l.epoch_start)
                                                           : as_rate(milliseconds(l.epoch_start)),
          .worker_utilization = as_rate(l.worker_utilization),
          .cores_used = as_rate(l.cores_used),
          .cached_share = exact(l.cached_share, l.basis),
          .shared_memory = exact(bytes(l.shared_memory), kByTheRules),
          .pinned_memory = exact(bytes(l.pinned_memory), kByTheRules),
          .worker_memory = with_band(bytes(l.worker_memory), kWorkerMemoryBand,
                                     "estimate from one measured worker")};
}

}  // namespace stoker
