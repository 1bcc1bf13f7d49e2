#include "system/machine_facts.h"

#include <algorithm>

namespace stoker {
namespace {

/// The bytes of a line "MemTotal:  65536 kB" of /proc/meminfo.
Bytes line_of(const std::string& meminfo, std::string_view key) {
  constexpr std::int64_t kMostKib = std::int64_t{1} << 50;
  const std::string_view value = value_of(meminfo, key);
  const auto kib = whole_number(value.substr(0, value.find(' ')));
  return kib && *kib > 0 && *kib <= kMostKib ? kKiB * *kib : Bytes{};
}

}  // namespace

Bytes MemoryFacts::usable() const {
  if (!limit) return total;
  return total.count() > 0 ? std::min(total, limit->limit) : limit->limit;
}

Bytes MemoryFacts::available_here() const {
  if (!limit) return available;
  return std::min(available, std::max(Bytes{}, limit->limit - limit->used));
}

MemoryFacts memory_from(const SystemFiles& files) {
  const std::string meminfo = files("/proc/meminfo").value_or("");
  MemoryFacts memory;
  memory.total = line_of(meminfo, "MemTotal");
  memory.available = line_of(meminfo, "MemAvailable");
  memory.limit = memory_limit(cgroup_folders("memory", files), files);
  return memory;
}

MachineFacts machine_facts_from(const SystemFiles& files, const SystemFolders& folders) {
  MachineFacts facts;
  facts.processor = processor_from(files);
  facts.limits = host_limits_from(files);
  facts.memory = memory_from(files);
  facts.cpu_cgroup = cgroup_folders("cpu", files);
  facts.kernel = std::string(trimmed(files("/proc/sys/kernel/osrelease").value_or("")));
  facts.gpus = gpu_devices_from(files, folders);
  return facts;
}

MachineFacts this_machine_facts() {
  MachineFacts facts = machine_facts_from(system_files(), system_folders());
  facts.processor = this_processor();
  facts.limits = this_host_limits();
  return facts;
}

}  // namespace stoker
