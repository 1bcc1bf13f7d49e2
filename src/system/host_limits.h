#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "system/system_files.h"

namespace stoker {

/// What a host grants to the loaders of one job, and what programs take it for. Zero or absent:
/// could not be read.
struct HostLimits {
  int processors = 0;  ///< online: what os.cpu_count() and nproc --all say
  int affinity = 0;    ///< cores that this process may run on: len(os.sched_getaffinity(0))
  std::optional<double> quota{};  ///< cores of CPU time that the cgroup grants
  int cgroup_version = 0;         ///< whose quota it is: 1 or 2
  /// Periods of the quota since the cgroup was made, and those in which it was used up.
  std::int64_t periods = 0, throttled = 0;
  Bytes shared_memory{};             ///< size of /dev/shm
  Bytes shared_memory_free{};        ///< bytes that /dev/shm has left at present
  std::int64_t open_files = 0;       ///< soft limit of RLIMIT_NOFILE
  std::int64_t open_files_most = 0;  ///< hard limit: what `ulimit -n` may raise it to

  /// min(affinity, quota); 0 when neither is known.
  [[nodiscard]] double usable_cores() const;
};

/// Affinity, quota and throttling by the system files; the rest is left at zero.
[[nodiscard]] HostLimits host_limits_from(const SystemFiles& files);

/// What this process is granted on this computer.
[[nodiscard]] HostLimits this_host_limits();

}  // namespace stoker
