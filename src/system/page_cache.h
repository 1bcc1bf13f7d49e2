#pragma once

#include <optional>

#include "base/units.h"

namespace stoker {

/// Size of a page of memory on this machine.
[[nodiscard]] Bytes page_size();
/// Whole pages that hold so many bytes.
[[nodiscard]] double pages_in(Bytes size);

/// Pages of an open file that the page cache holds, by cachestat(2) (Linux 6.5); nullopt where the
/// kernel or the file system cannot say.
[[nodiscard]] std::optional<double> cached_pages_by_cachestat(int handle);
/// Pages of an open file that the page cache holds, by mincore(2) on a mapping: for older kernels.
[[nodiscard]] std::optional<double> cached_pages_by_mincore(int handle, Bytes size);

/// Asks the kernel to drop an open file's clean pages from the page cache (POSIX_FADV_DONTNEED):
/// needs no right and touches this file alone. Pages that others map stay.
void drop_cached_pages(int handle);

}  // namespace stoker
