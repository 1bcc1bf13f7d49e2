#pragma once

#include <vector>

#include "input/probe/probe.h"
#include "input/probe/sample_cost.h"

namespace stoker {

/// What a host with so much memory makes of reading the data set again and again.
struct CacheWhatIf {
  Bytes memory;
  bool this_host = false;    ///< `memory` is what this host has to give now
  double cached = 0;         ///< share of a later epoch's reads that the page cache serves
  double first_per_s = 0;    ///< samples/s at most while nothing is cached
  double later_per_s = 0;    ///< samples/s at most from the second epoch on
  double first_seconds = 0;  ///< of an epoch
  double later_seconds = 0;
  bool disk_bound = false;  ///< later epochs still wait for storage, not for the cores
};

/// One row for each size of memory. The rate is bounded by the cores (each preparing samples at
/// the Python loader's cost) and by storage, whose best measured rate has to serve only what the
/// cache misses (cached_share of input/page_cache.h): min(cores, storage / (1 - cached)). An upper
/// bound: it takes enough workers to keep storage busy. Empty when storage was not measured, or
/// when the data stays in memory anyway.
[[nodiscard]] std::vector<CacheWhatIf> cache_what_if(const Probe& probe, const SampleCost& cost,
                                                     const std::vector<Bytes>& memories);

/// Samples/s that storage delivers at best, none cached; 0: not measured.
[[nodiscard]] double storage_samples_per_s(const Probe& probe);

}  // namespace stoker
