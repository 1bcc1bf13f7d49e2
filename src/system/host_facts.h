#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// Content of a file of /proc or /sys, or nothing when it cannot be read. Tests give a map.
using SystemFiles = std::function<std::optional<std::string>(const std::string& path)>;

/// Cores that a list like "0-3,8,10-11" names; 0 when it is malformed.
[[nodiscard]] int count_cpu_list(std::string_view list);

/// Where one cgroup controller of this process is mounted and which folders apply, innermost first:
/// a limit in any of them holds.
struct CgroupFolders {
  int version = 0;  ///< 1 or 2; 0 = none found
  std::vector<std::string> folders;
};
/// `controller` is "cpu" or "memory". Reads the texts of /proc/self/cgroup and
/// /proc/self/mountinfo: the version-1 hierarchy of the controller where there is one, else the
/// unified hierarchy.
[[nodiscard]] CgroupFolders cgroup_folders(std::string_view controller,
                                           std::string_view self_cgroup,
                                           std::string_view mountinfo);

/// Smallest CPU quota in cores over the folders; nullopt: no limit.
[[nodiscard]] std::optional<double> cpu_quota(const CgroupFolders& groups,
                                              const SystemFiles& files);
/// Smallest memory limit over the folders; nullopt: no limit.
[[nodiscard]] std::optional<Bytes> memory_limit(const CgroupFolders& groups,
                                                const SystemFiles& files);

/// The host by its system files: cores = min(affinity, quota), memory = min(MemTotal, limit).
/// `shared_memory` is the size of /dev/shm, which no file tells. A figure that cannot be read is
/// left at its default and named in `assumption`.
[[nodiscard]] Host host_from(const SystemFiles& files, Bytes shared_memory);

/// The files of this computer.
[[nodiscard]] SystemFiles system_files();

/// This computer.
[[nodiscard]] Host this_host();

}  // namespace stoker
