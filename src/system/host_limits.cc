#include "system/host_limits.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "base/text.h"

namespace stoker {
namespace {

/// The number after `key` in lines of "key number" (cpu.stat); 0 when there is none.
std::int64_t counter(const std::string& text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() + 1 || line[key.size()] != ' ')
      continue;
    std::int64_t value = 0;
    std::from_chars(line.data() + key.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

/// The list after "Cpus_allowed_list:" of /proc/self/status.
std::string_view allowed_list(std::string_view status) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::size_t first = status.find_first_not_of(" \t", at + kKey.size());
  if (first == std::string_view::npos) return {};
  return status.substr(first, status.find('\n', first) - first);
}

std::int64_t files_of(rlim_t limit) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return limit == RLIM_INFINITY || limit > static_cast<rlim_t>(kMost)
             ? kMost
             : static_cast<std::int64_t>(limit);
}

}  // namespace

double HostLimits::usable_cores() const {
  if (!quota) return affinity;
  return affinity > 0 ? std::min<double>(affinity, *quota) : *quota;
}

HostLimits host_limits_from(const SystemFiles& files) {
  const auto text = [&](const char* path) { return files(path).value_or(""); };
  HostLimits limits;
  limits.processors = count_cpu_list(text("/sys/devices/system/cpu/online"));
  const std::string status = text("/proc/self/status");
  limits.affinity = count_cpu_list(allowed_list(status));
  const CgroupFolders groups =
      cgroup_folders("cpu", text("/proc/self/cgroup"), text("/proc/self/mountinfo"));
  limits.quota = cpu_quota(groups, files);
  if (limits.quota) limits.cgroup_version = groups.version;
  for (const std::string& folder : groups.folders) {
    const std::string stat = files(folder + "/cpu.stat").value_or("");
    const std::int64_t throttled = counter(stat, "nr_throttled");
    if (throttled <= limits.throttled) continue;  // the folder that throttled most
    limits.throttled = throttled;
    limits.periods = counter(stat, "nr_periods");
  }
  return limits;
}

HostLimits this_host_limits() {
  HostLimits limits = host_limits_from(system_files());
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    const auto block = static_cast<std::int64_t>(shm.f_frsize);
    limits.shared_memory = Bytes(static_cast<std::int64_t>(shm.f_blocks) * block);
    limits.shared_memory_free = Bytes(static_cast<std::int64_t>(shm.f_bavail) * block);
  }
  struct rlimit open {};
  if (::getrlimit(RLIMIT_NOFILE, &open) == 0) {
    limits.open_files = files_of(open.rlim_cur);
    limits.open_files_most = files_of(open.rlim_max);
  }
  return limits;
}

}  // namespace stoker
