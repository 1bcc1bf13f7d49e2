#pragma once

#include <filesystem>
#include <vector>

#include "base/units.h"
#include "input/data/folder_scan.h"
#include "input/probe/probe.h"

namespace stoker {

/// Times reading `files` one by one from storage, after asking the kernel to forget them
/// (posix_fadvise DONTNEED: needs no privilege, touches these files only). Stops at `deadline`
/// (wall_time()) or `max_read`. `cold_measured` stays false where the kernel keeps the pages
/// (tmpfs, files mapped elsewhere) and the figures would be those of memory.
[[nodiscard]] ReadFacts measure_cold_reads(const std::vector<DataFile>& files, Nanos deadline,
                                           Bytes max_read);

}  // namespace stoker
