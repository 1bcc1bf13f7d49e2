#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "input/probe/storage.h"
#include "system/host_facts.h"

namespace stoker {
namespace {

/// "MemAvailable:   20480000 kB" of /proc/meminfo.
std::optional<Bytes> available_in(std::string_view meminfo) {
  constexpr std::string_view kName = "MemAvailable:";
  const std::size_t at = meminfo.find(kName);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t digit = meminfo.find_first_of("0123456789", at);
  if (digit == std::string_view::npos) return std::nullopt;
  std::int64_t kib = 0;
  const auto [end, error] =
      std::from_chars(meminfo.data() + digit, meminfo.data() + meminfo.size(), kib);
  if (error != std::errc() || kib < 0 || kib > (std::int64_t{1} << 50)) return std::nullopt;
  return kKiB * kib;
}

}  // namespace

void read_host_memory(const SystemFiles& files, StorageFacts& out) {
  const auto text = [&](const char* path) { return files(path).value_or(""); };
  out.available = available_in(text("/proc/meminfo")).value_or(Bytes{});
  const CgroupFolders groups =
      cgroup_folders("memory", text("/proc/self/cgroup"), text("/proc/self/mountinfo"));
  out.limit = memory_limit(groups, files).value_or(Bytes{});
}

}  // namespace stoker
