#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "system/system_files.h"

namespace stoker {

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
/// Folders of a controller's control groups by this process's files.
[[nodiscard]] CgroupFolders cgroup_folders(std::string_view controller, const SystemFiles& files);

/// Smallest CPU quota in cores over the folders; nullopt: no limit.
[[nodiscard]] std::optional<double> cpu_quota(const CgroupFolders& groups,
                                              const SystemFiles& files);

/// What a cgroup may hold in memory, and what it holds.
struct MemoryLimit {
  Bytes limit;
  Bytes
      used;  ///< without pages of files that nobody used lately: the kernel gives those back first
};
/// The smallest limit over the folders, with what the folder that sets it uses; nullopt: no limit.
[[nodiscard]] std::optional<MemoryLimit> memory_limit(const CgroupFolders& groups,
                                                      const SystemFiles& files);

/// Periods of the quota since the cgroup was made, and those in which it was used up: of the folder
/// that was held back most.
struct Throttling {
  std::int64_t periods = 0, throttled = 0;
  Nanos time{};  ///< that processes were ready and stood still, all of them together
};
[[nodiscard]] Throttling throttling(const CgroupFolders& groups, const SystemFiles& files);

/// How often the kernel ended a process of the innermost folder for want of memory.
[[nodiscard]] std::int64_t memory_kills(const CgroupFolders& groups, const SystemFiles& files);

}  // namespace stoker
