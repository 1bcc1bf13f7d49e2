#include "device/resolve/host_option.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/ranges.h"
#include "base/setting.h"
#include "base/text.h"
#include "device/host/host_speed.h"

namespace stoker {
namespace {

std::string where_host() { return mark(Setting::kHost); }
constexpr const char* kExample = "write it like cores=16,ram=64G,shm=8G,cpu=EPYC 7742";
constexpr std::string_view kCpu = "cpu";

Result<double> number_in(std::string_view text, const Range& range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kUsage, "\"" + std::string(text) + "\" is not a number; " + kExample);
  }
  return within(value, range);
}

Result<double> size_in(std::string_view text, const Range& range) {
  const auto size = TRY(parse_bytes(text));
  return within(static_cast<double>(size.count()), range);
}

struct HostKey {
  const char* name;
  const char* means;  ///< for the assumption line, when it is not given
  const char* words;  ///< for a refusal
  Range range;
  bool is_size;
  void (*set)(Host&, double);
};

Bytes bytes_of(double value) { return Bytes(static_cast<std::int64_t>(value)); }

constexpr std::array<HostKey, 6> kKeys{{
    {"cores", "cores", "cores", range::kHostCores, false, [](Host& h, double v) { h.cores = v; }},
    {"ram", "memory", "ram or memory, a size", range::kMemoryBytes, true,
     [](Host& h, double v) { h.memory = bytes_of(v); }},
    {"shm", "/dev/shm", "shm, the size of /dev/shm", range::kSharedMemoryBytes, true,
     [](Host& h, double v) { h.shared_memory = bytes_of(v); }},
    {"disk", "", "disk, bytes/s read in sequence: 500M", range::kMemoryBytes, true,
     [](Host& h, double v) { h.disk_bandwidth = v; }},
    {"iops", "", "iops, random reads/s", range::kDiskIops, false,
     [](Host& h, double v) { h.disk_iops = v; }},
    {"speed", "", "speed of a core against the probed machine's: 1.2", range::kCoreSpeed, false,
     [](Host& h, double v) { h.relative_core_speed = v; }},
}};

tl::unexpected<Error> unknown_key(const std::string& key) {
  std::vector<std::string> names{"memory", std::string(kCpu)};
  for (const HostKey& known : kKeys) names.emplace_back(known.name);
  const std::string near = suggestion(key, names);
  std::string known = "cpu, the name of its processor: EPYC 7742";
  for (const HostKey& one : kKeys) known += (known.empty() ? "" : "; ") + std::string(one.words);
  return fail(
      ErrorCode::kUsage,
      "\"" + key + "\" is not a part of a host" + near + " (known: " + known + "); " + kExample,
      where_host());
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Status set_cpu(std::string_view name, Host& host) {
  auto known = host_speed(name);
  if (!known) {
    known.error().where = where_host() + " cpu";
    known.error().code = ErrorCode::kUsage;
    return tl::unexpected(known.error());
  }
  host.cpu = known->cpu;
  host.dispatch_speed = known->speed, host.dispatch_spread = known->spread;
  host.dispatch_basis = known->basis;
  return {};
}

/// "cores=8,ram=32gb" for "8 cores, 32 GB" or "8cores,32GB RAM"; empty where a part tells neither.
std::string likely_host(const std::vector<std::string>& parts) {
  std::string likely;
  for (const std::string& part : parts) {
    if (part.find('=') != std::string::npos) {
      likely += (likely.empty() ? "" : ",") + std::string(without_blanks(part));
      continue;
    }
    if (part.find('.') != std::string::npos) return {};  // "1.5 TB" would become 15
    std::string plain = simplified(part);
    for (const std::string_view word : {"ram", "memory", "of"}) {
      const auto at = plain.find(word);
      if (at != std::string::npos) plain.erase(at, word.size());
    }
    const std::size_t digits = std::min(plain.find_first_not_of("0123456789"), plain.size());
    const std::string number = plain.substr(0, digits), unit = plain.substr(digits);
    constexpr std::array<std::string_view, 8> kCores{"core", "cores", "cpu",     "cpus",
                                                     "vcpu", "vcpus", "threads", "cpucores"};
    // A number alone, and nothing else: what people count of a host is its cores.
    const bool cores =
        std::ranges::find(kCores, unit) != kCores.end() || (unit.empty() && parts.size() == 1);
    const bool size = unit == "g" || unit == "gb" || unit == "gib" || unit == "t" || unit == "tb";
    if (number.empty() || (!cores && !size)) return {};
    likely += (likely.empty() ? "" : ",") + (cores ? "cores=" + number : "ram=" + number + unit);
  }
  return likely;
}

/// What Linux and `base` decide when the text does not.
void fill_in(Host& host, const std::set<std::string>& given, const Host& base) {
  std::string from_base;
  for (const HostKey& key : kKeys) {
    if (*key.means == '\0' || given.contains(key.name)) continue;
    if (std::string_view(key.name) == "shm" && given.contains("ram")) {
      host.shared_memory =
          host.memory / 2;  // tmpfs(5): size defaults to half of the physical memory
      host.assumption = "/dev/shm is half of the memory";
      continue;
    }
    from_base += (from_base.empty() ? "" : " and ") + std::string(key.means);
  }
  if (from_base.empty()) return;
  host.assumption += (host.assumption.empty() ? "" : ", ") + from_base + " as " +
                     (base.name.empty() ? "the given host" : base.name);
}

}  // namespace

Result<Host> parse_host(std::string_view text, const Host& base) {
  if (simplified(text).empty())
    return fail(ErrorCode::kUsage, std::string("is empty; ") + kExample, where_host());
  Host host = base;
  host.name = "given host";
  host.is_this_machine = false;
  host.assumption.clear();
  std::set<std::string> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      const std::string likely = likely_host(split(text, ','));
      return fail(ErrorCode::kUsage,
                  "\"" + part + "\" has no value; " +
                      (likely.empty() ? std::string(kExample)
                                      : "write " + mark(Setting::kHost) + " " + likely),
                  where_host());
    }
    std::string name = simplified(part.substr(0, equals));
    if (name == "memory") name = "ram";
    if (name == kCpu) {
      if (!given.insert(name).second)
        return fail(ErrorCode::kUsage, name + " is given twice; give it once", where_host());
      TRY(set_cpu(without_blanks(std::string_view(part).substr(equals + 1)), host));
      continue;
    }
    const auto key =
        std::ranges::find(kKeys, name, [](const HostKey& k) { return std::string(k.name); });
    if (key == kKeys.end()) return unknown_key(part.substr(0, equals));
    if (!given.insert(name).second) {
      return fail(ErrorCode::kUsage, name + " is given twice; give it once", where_host());
    }
    const std::string_view value = std::string_view(part).substr(equals + 1);
    const auto number = key->is_size ? size_in(value, key->range) : number_in(value, key->range);
    if (!number) {
      return fail(ErrorCode::kUsage, number.error().message, where_host() + " " + name);
    }
    key->set(host, *number);
  }
  fill_in(host, given, base);
  if (host.memory.count() > 0 && host.shared_memory > host.memory) {
    if (given.contains("shm")) {
      return fail(ErrorCode::kUsage,
                  "shm=" + human_bytes(host.shared_memory) +
                      " exceeds ram=" + human_bytes(host.memory) + "; /dev/shm lies in memory",
                  where_host());
    }
    host.shared_memory = host.memory;
  }
  return host;
}

}  // namespace stoker
