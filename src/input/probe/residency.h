#pragma once

#include <span>
#include <string>

#include "input/data/folder_scan.h"

namespace stoker {

/// How much of the files the page cache holds.
struct Residency {
  double share = 0;        ///< of their bytes, in whole pages
  std::int64_t files = 0;  ///< that could be asked
  std::string method;      ///< "cachestat", "mincore"; empty: none could be asked
};

/// Asks at most `at_most` of the files, until `deadline` (wall_time()): by cachestat(2) where the
/// kernel has it (Linux 6.5), else by mincore(2) on a mapping. Reads nothing.
[[nodiscard]] Residency residency_of(std::span<const DataFile> files, std::size_t at_most,
                                     Nanos deadline);

/// What residency_of() says, by mincore(2) alone: for tests, and older kernels.
[[nodiscard]] Residency residency_by_mincore(std::span<const DataFile> files);

}  // namespace stoker
