#include "system/host_limits.h"

#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

#include "system/cgroup.h"

namespace stoker {
namespace {

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
  HostLimits limits;
  limits.processors = count_cpu_list(files("/sys/devices/system/cpu/online").value_or(""));
  const std::string status = files("/proc/self/status").value_or("");
  limits.affinity = count_cpu_list(value_of(status, "Cpus_allowed_list"));
  const CgroupFolders groups = cgroup_folders("cpu", files);
  limits.quota = cpu_quota(groups, files);
  if (limits.quota) limits.cgroup_version = groups.version;
  const Throttling held_back = throttling(groups, files);
  limits.periods = held_back.periods;
  limits.throttled = held_back.throttled;
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
