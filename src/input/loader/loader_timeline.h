#pragma once

#include <vector>

#include "input/loader/loader_events.h"
#include "input/loader/loader_simulation.h"

namespace stoker {

/// The first batches of an epoch as the simulation plays them, rank 0 alone.
struct LoaderTimeline {
  int workers = 0;
  bool pinned = false;
  std::vector<LoaderSpan> spans;  ///< empty when nothing is known of the data
};

/// From the start of a first epoch, workers' start-up included, until the loader has long been in
/// its steady state.
[[nodiscard]] LoaderTimeline loader_timeline(const LoaderSettings& settings, const SampleCost& cost,
                                             const HostShare& host, const Consumer& consumer);

}  // namespace stoker
