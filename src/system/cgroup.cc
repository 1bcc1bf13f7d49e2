#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "system/host_facts.h"

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

std::optional<double> number(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> quota_in(const std::string& folder, int version, const SystemFiles& files) {
  std::optional<double> quota;
  std::optional<double> period;
  if (version == 2) {
    const auto text = files(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!text) return std::nullopt;
    const std::vector<std::string> words = split(*text, ' ');
    if (words.size() != 2) return std::nullopt;
    quota = number(words[0]);
    period = number(words[1]);
  } else {
    quota = number(files(folder + "/cpu.cfs_quota_us").value_or(""));  // -1: no limit
    period = number(files(folder + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
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

std::optional<double> cpu_quota(const CgroupFolders& groups, const SystemFiles& files) {
  std::optional<double> least;
  for (const std::string& folder : groups.folders) {
    const auto quota = quota_in(folder, groups.version, files);
    if (quota && (!least || *quota < *least)) least = quota;
  }
  return least;
}

std::optional<Bytes> memory_limit(const CgroupFolders& groups, const SystemFiles& files) {
  const char* const name = groups.version == 2 ? "/memory.max" : "/memory.limit_in_bytes";
  constexpr double kNoLimit = 0x1p60;  // version 1 writes about 2^63 when there is none
  std::optional<Bytes> least;
  for (const std::string& folder : groups.folders) {
    const auto limit = number(files(folder + name).value_or(""));
    if (!limit || *limit <= 0 || *limit >= kNoLimit) continue;
    const Bytes bytes(static_cast<std::int64_t>(*limit));
    if (!least || bytes < *least) least = bytes;
  }
  return least;
}

}  // namespace stoker
