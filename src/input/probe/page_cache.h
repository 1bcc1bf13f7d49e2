#pragma once

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace stoker {

/// Part of the DRAM that the page cache may fill beside the processes.
inline constexpr double kCacheableMemory = 0.8;

/// Share of the reads of a later epoch that a least-recently-used cache of `memory` serves, when
/// each epoch reads the whole data set once in a new random order. With the cache holding the share
/// x of the data: a file read at position p of one epoch and q of the next has seen the share 1 -
/// p(1-q) of the data in between, and is still there when that is below x. For uniform p and q: x +
/// (1-x) ln(1-x), much below x. Linux keeps pages that were read twice a little longer, so this is
/// the careful side.
[[nodiscard]] inline double cached_share(Bytes dataset, Bytes memory) {
  if (memory.count() <= 0 || dataset.count() <= 0) return 1;
  const double x = kCacheableMemory * (memory / dataset);
  if (x >= 1) return 1;
  return std::clamp(x + (1 - x) * std::log1p(-x), 0.0, 1.0);
}

}  // namespace stoker
