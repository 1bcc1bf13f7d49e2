#include "device/host/this_host.h"

#include <algorithm>

namespace stoker {

Host host_from(const HostLimits& limits, const MemoryFacts& memory) {
  Host host;
  host.name = "this machine";
  host.is_this_machine = true;
  host.shared_memory = limits.shared_memory;
  const auto assume = [&](const char* what) {
    host.assumption += (host.assumption.empty() ? "" : ", ") + std::string(what);
  };
  host.cores = std::max(limits.affinity, 1);
  if (limits.affinity == 0) assume("1 core (the affinity of this process cannot be read)");
  if (limits.quota) host.cores = std::min(host.cores, *limits.quota);
  host.memory = memory.usable();
  // Pages of /dev/shm count against the cgroup's limit, however large the file system says it is.
  if (host.memory.count() > 0) host.shared_memory = std::min(host.shared_memory, host.memory);
  if (host.memory.count() == 0) assume("unknown memory (/proc/meminfo cannot be read)");
  return host;
}

Host this_host() { return host_from(this_host_limits(), memory_from(system_files())); }

}  // namespace stoker
