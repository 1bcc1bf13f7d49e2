#pragma once

#include <cstdint>
#include <limits>

#include "input/loader/loader_events.h"
#include "input/loader/loader_simulation.h"

namespace stoker {

/// An epoch of unknown length is taken as endless for throughput.
inline constexpr std::int64_t kEndlessBatches = std::int64_t{1} << 40;

/// The batches of one epoch of one rank.
struct EpochShape {
  std::int64_t samples = 0;  ///< 0: unknown
  std::int64_t batches = kEndlessBatches;
  std::int64_t last = 0;  ///< samples of the last batch
  /// Iterable data sets read by workers: the samples of each worker's stream.
  std::vector<std::int64_t> streams;
};

[[nodiscard]] EpochShape epoch_shape(const LoaderSettings& settings, const SampleCost& cost,
                                     int ranks);

/// Settings, costs, host and consumer as the event simulation runs on them; an endless epoch.
[[nodiscard]] LoaderModel loader_model(const LoaderSettings& settings, const SampleCost& cost,
                                       const HostShare& host, const Consumer& consumer);

/// Standard deviation of a batch's time alone, over its mean.
[[nodiscard]] double unevenness(const LoaderModel& model);

/// The model with every batch costing the median batch of the deck.
[[nodiscard]] LoaderModel median_batches(LoaderModel model);

}  // namespace stoker
