#include "system/cgroup.h"

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

/// One line of /proc/self/mountinfo that mounts cgroups (proc(5)): fields 4, 5 and, behind the " -
/// ", the file system's type and its options.
struct CgroupMount {
  std::string root;  ///< folder of the hierarchy that is visible at the mount point
  std::string point;
  int version = 0;
  std::vector<std::string> controllers;  ///< version 1 only
};

std::vector<CgroupMount> cgroup_mounts(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string& line : split(mountinfo, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> left = split(std::string_view(line).substr(0, dash), ' ');
    const std::vector<std::string> right = split(std::string_view(line).substr(dash + 3), ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    if (right[0] == "cgroup2") mounts.push_back({left[3], left[4], 2, {}});
    if (right[0] == "cgroup") mounts.push_back({left[3], left[4], 1, split(right[2], ',')});
  }
  return mounts;
}

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

/// The path of this process in the hierarchy: lines "ID:CONTROLLERS:PATH", unified "0::PATH"
/// (cgroups(7)).
std::optional<std::string> own_path(std::string_view self_cgroup, std::string_view controller) {
  for (const std::string& line : split(self_cgroup, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        controller.empty() ? controllers.empty() : contains(split(controllers, ','), controller);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// From the process's own folder up to the mount point. A container may see a path that lies
/// outside of what is mounted ("/docker/ID" with root "/docker/ID", or "/../.."): then the mount
/// point is its own.
std::vector<std::string> folders_of(const CgroupMount& mount, std::string path) {
  const std::string prefix = mount.root == "/" ? "" : mount.root;
  if (path == prefix) path.clear();
  else if (path.starts_with(prefix + "/")) path.erase(0, prefix.size());
  else path.clear();
  if (path == "/" || path.find("/..") != std::string::npos) path.clear();
  std::vector<std::string> folders;
  while (!path.empty()) {
    folders.push_back(mount.point + path);
    path.erase(path.rfind('/'));
  }
  folders.push_back(mount.point);
  return folders;
}

std::optional<double> quota_in(const std::string& folder, int version, const SystemFiles& files) {
  std::optional<double> quota;
  std::optional<double> period;
  if (version == 2) {
    const auto text = files(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!text) return std::nullopt;
    const std::vector<std::string> words = split(*text, ' ');
    if (words.size() != 2) return std::nullopt;
    quota = decimal_number(words[0]);
    period = decimal_number(words[1]);
  } else {
    quota = decimal_number(files(folder + "/cpu.cfs_quota_us").value_or(""));  // -1: no limit
    period = decimal_number(files(folder + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

/// The number after `key` in lines of "key number" (cpu.stat); 0 when there is none.
std::int64_t counter(const std::string& text, const std::string& key) {
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(key + " ")) return whole_number(line.substr(key.size())).value_or(0);
  }
  return 0;
}

}  // namespace

CgroupFolders cgroup_folders(std::string_view controller, std::string_view self_cgroup,
                             std::string_view mountinfo) {
  const std::vector<CgroupMount> mounts = cgroup_mounts(mountinfo);
  // On mixed systems the controller sits in its version-1 hierarchy, and the unified one is empty.
  for (const int version : {1, 2}) {
    const auto path = own_path(self_cgroup, version == 1 ? controller : std::string_view());
    if (!path) continue;
    for (const CgroupMount& mount : mounts) {
      const bool fits =
          mount.version == version && (version == 2 || contains(mount.controllers, controller));
      if (fits) return {version, folders_of(mount, *path)};
    }
  }
  return {};
}

CgroupFolders cgroup_folders(std::string_view controller, const SystemFiles& files) {
  return cgroup_folders(controller, files("/proc/self/cgroup").value_or(""),
                        files("/proc/self/mountinfo").value_or(""));
}

std::optional<double> cpu_quota(const CgroupFolders& groups, const SystemFiles& files) {
  std::optional<double> least;
  for (const std::string& folder : groups.folders) {
    const auto quota = quota_in(folder, groups.version, files);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

std::optional<MemoryLimit> memory_limit(const CgroupFolders& groups, const SystemFiles& files) {
  const bool unified = groups.version == 2;
  const char* const limit_name = unified ? "/memory.max" : "/memory.limit_in_bytes";
  const char* const used_name = unified ? "/memory.current" : "/memory.usage_in_bytes";
  constexpr double kNoLimit = 0x1p60;  // version 1 writes about 2^63 when there is none
  std::optional<MemoryLimit> least;
  for (const std::string& folder : groups.folders) {
    const auto limit = decimal_number(files(folder + limit_name).value_or(""));
    if (!limit || *limit <= 0 || *limit >= kNoLimit) continue;
    const Bytes bytes(static_cast<std::int64_t>(*limit));
    if (least && bytes >= least->limit) continue;
    const std::int64_t used = whole_number(files(folder + used_name).value_or("")).value_or(0);
    const std::int64_t cached = counter(files(folder + "/memory.stat").value_or(""),
                                        unified ? "inactive_file" : "total_inactive_file");
    least = MemoryLimit{bytes, Bytes(std::max<std::int64_t>(0, used - cached))};
  }
  return least;
}

Throttling throttling(const CgroupFolders& groups, const SystemFiles& files) {
  Throttling most;
  for (const std::string& folder : groups.folders) {
    const std::string stat = files(folder + "/cpu.stat").value_or("");
    const std::int64_t throttled = counter(stat, "nr_throttled");
    if (throttled <= most.throttled) continue;
    // Version 1 counts nanoseconds, version 2 microseconds.
    const Nanos time = groups.version == 2
                           ? static_cast<double>(counter(stat, "throttled_usec")) * kMicrosecond
                           : Nanos(static_cast<double>(counter(stat, "throttled_time")));
    most = {counter(stat, "nr_periods"), throttled, time};
  }
  return most;
}

std::int64_t memory_kills(const CgroupFolders& groups, const SystemFiles& files) {
  if (groups.folders.empty()) return 0;
  const std::string name = groups.version == 2 ? "/memory.events" : "/memory.oom_control";
  return counter(files(groups.folders.front() + name).value_or(""), "oom_kill");
}

}  // namespace stoker
