#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/units.h"
#include "input/data/file_system.h"
#include "input/data/folder_scan.h"
#include "input/probe/residency.h"
#include "system/system_files.h"

namespace stoker {

/// Reads at once of the cells that are measured.
inline constexpr int kQueueDepths[] = {1, 2, 4, 8, 16};

/// Reads of one size by so many threads at once, wall times.
struct DepthFacts {
  int depth = 1;
  std::int64_t reads = 0;  ///< that the figures rest on
  double reads_per_s = 0;
  double bytes_per_s = 0;
  double mean_ms = 0, p95_ms = 0;  ///< of one read
};

/// How the reads went around the page cache.
enum class ColdMethod : std::uint8_t {
  kNone,    ///< not possible here: the figures are missing
  kDirect,  ///< O_DIRECT: past the page cache, which stays as it was
  kForget   ///< buffered, after asking the kernel to forget the file (posix_fadvise DONTNEED)
};
[[nodiscard]] std::string_view cold_method_name(ColdMethod method);

/// What the data set's own files cost to read. Only reads; nothing is written.
struct StorageFacts {
  FileSystemFacts file_system;
  ColdMethod method = ColdMethod::kNone;
  std::vector<DepthFacts> random_4k;    ///< 4 KiB at random places of the files
  std::vector<DepthFacts> whole_files;  ///< open, read to the end, close, files in random order
  double sequential_bytes_per_s = 0;    ///< 1 MiB after the other of large files; 0: no large file
  double small_file_warm_us = 0;        ///< open, read, close of a file in the page cache, wall
  double stat_us = 0;                   ///< asking a file for its size, as the listing found it
  double list_entries_per_s = 0;        ///< readdir, as the listing found the folders
  Residency resident;                   ///< before anything was read
  Bytes available;                      ///< MemAvailable of this host
  Bytes limit;                          ///< of the memory cgroup; 0: none
  Bytes read;                           ///< by all of this

  /// The row of whole files with the most files a second; nullptr when none was measured.
  [[nodiscard]] const DepthFacts* best_whole_files() const;
  /// Memory that the page cache may grow into: the smaller of `available` and `limit`.
  [[nodiscard]] Bytes usable_memory() const;
};

struct StorageOptions {
  Nanos deadline;         ///< wall_time() at which measuring ends
  Bytes max_read = kGiB;  ///< bytes read at most
  std::uint64_t seed = 1;
};

/// Measures reads of `files` (a sample of the data set, in random order): 4 KiB and whole files at
/// each depth, sequentially, and small files out of the page cache. Residency, listing and memory
/// are filled by the caller, who looks before others read. Odd things go to `diagnostics`.
void measure_storage(const std::vector<DataFile>& files, const StorageOptions& options,
                     StorageFacts& out, Diagnostics& diagnostics);

/// MemAvailable and the limit of the memory cgroup (version 1 or 2) of this process.
void read_host_memory(const SystemFiles& files, StorageFacts& out);

}  // namespace stoker
