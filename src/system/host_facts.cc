#include "system/host_facts.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/text.h"

namespace stoker {
namespace {

std::optional<std::int64_t> integer(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The value after `key` in lines of "key: value" ("Cpus_allowed_list:\t0-3").
std::string_view field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.substr(key.size()).empty() || line[key.size()] != ':')
      continue;
    line.remove_prefix(key.size() + 1);
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view() : line.substr(first);
  }
  return {};
}

std::optional<Bytes> physical_memory(std::string_view meminfo) {
  const std::string_view text = field(meminfo, "MemTotal");
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto kib = integer(text.substr(0, blank));
  if (!kib || *kib <= 0) return std::nullopt;
  return kKiB * *kib;
}

}  // namespace

int count_cpu_list(std::string_view list) {
  while (!list.empty() && (list.back() == '\n' || list.back() == ' ')) list.remove_suffix(1);
  std::int64_t count = 0;
  for (const std::string& part : split(list, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = integer(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : integer(std::string_view(part).substr(dash + 1));
    constexpr std::int64_t kMostCores = 1 << 20;
    if (!first || !last || *first < 0 || *last < *first || *last > kMostCores) return 0;
    count += *last - *first + 1;
  }
  return static_cast<int>(std::min<std::int64_t>(count, 1 << 20));
}

Host host_from(const SystemFiles& files, Bytes shared_memory) {
  const auto text = [&](const char* path) { return files(path).value_or(""); };
  Host host;
  host.name = "this machine";
  host.is_this_machine = true;
  host.shared_memory = shared_memory;
  const auto assume = [&](const char* what) {
    host.assumption += (host.assumption.empty() ? "" : ", ") + std::string(what);
  };

  const std::string cgroup = text("/proc/self/cgroup");
  const std::string mounts = text("/proc/self/mountinfo");
  const int allowed = count_cpu_list(field(text("/proc/self/status"), "Cpus_allowed_list"));
  host.cores = std::max(allowed, 1);
  if (allowed == 0) assume("1 core (the affinity of this process cannot be read)");
  if (const auto quota = cpu_quota(cgroup_folders("cpu", cgroup, mounts), files)) {
    host.cores = std::min(host.cores, *quota);
  }

  const auto physical = physical_memory(text("/proc/meminfo"));
  const auto limit = memory_limit(cgroup_folders("memory", cgroup, mounts), files);
  if (physical) host.memory = *physical;
  if (limit) host.memory = physical ? std::min(*physical, *limit) : *limit;
  if (!physical && !limit) assume("unknown memory (/proc/meminfo cannot be read)");
  return host;
}

SystemFiles system_files() {
  return [](const std::string& path) -> std::optional<std::string> {
    // These files say that they are empty, so they are read until they end.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) return std::nullopt;
    std::string content;
    char block[4096];
    while (const std::size_t n = std::fread(block, 1, sizeof block, file.get()))
      content.append(block, n);
    return content;
  };
}

Host this_host() {
  struct statvfs shm {};
  Bytes shared_memory;
  if (::statvfs("/dev/shm", &shm) == 0) {
    shared_memory =
        Bytes(static_cast<std::int64_t>(shm.f_blocks) * static_cast<std::int64_t>(shm.f_frsize));
  }
  return host_from(system_files(), shared_memory);
}

}  // namespace stoker
