#include "system/processor.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"

namespace stoker {
namespace {

const std::string kCpuFolder = "/sys/devices/system/cpu/";

double positive(std::string_view text) {
  const auto value = decimal_number(text);
  return value && *value > 0 ? *value : 0;
}

/// Model name on x86, the others on Arm.
std::string name_in(std::string_view cpuinfo) {
  for (const char* key : {"model name", "Processor", "Hardware"}) {
    if (const std::string_view name = value_of(cpuinfo, key); !name.empty())
      return std::string(name);
  }
  return {};
}

std::string vendor_in(std::string_view cpuinfo) {
  const std::string_view x86 = value_of(cpuinfo, "vendor_id");
  return std::string(x86.empty() ? value_of(cpuinfo, "CPU implementer") : x86);
}

/// The flags of x86 and the features of Arm for which libraries have kernels of their own.
constexpr std::array kSimd{
    "sse2",    "sse4_2",   "avx",         "f16c",        "fma",      "avx2",     "avx_vnni",
    "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16",
    "neon",    "asimd",    "asimddp",     "bf16",        "i8mm",     "sve",      "sve2"};

std::vector<std::string> simd_in(std::string_view cpuinfo) {
  std::set<std::string> words;
  for (const char* key : {"flags", "Features"}) {
    for (std::string& word : split(value_of(cpuinfo, key), ' ')) words.insert(std::move(word));
  }
  std::vector<std::string> found;
  for (const char* name : kSimd) {
    if (words.contains(name)) found.emplace_back(name);
  }
  return found;
}

/// SVE says no width here, so Arm counts with the 128 bits that all have.
int simd_bits_of(const std::vector<std::string>& simd) {
  const auto has = [&](const char* name) { return std::ranges::find(simd, name) != simd.end(); };
  if (has("avx512f")) return 512;
  if (has("avx2") || has("avx")) return 256;
  return has("sse2") || has("asimd") || has("neon") ? 128 : 0;
}

double clock_of(const SystemFiles& files, std::string_view cpuinfo, std::string_view name) {
  const auto highest = files(kCpuFolder + "cpu0/cpufreq/cpuinfo_max_freq");
  if (highest) {
    if (const double khz = positive(*highest); khz > 0) return khz / 1e3;
  }
  if (const auto at = name.rfind("@ "); at != std::string_view::npos && name.ends_with("GHz")) {
    if (const double ghz = positive(name.substr(at + 2, name.size() - at - 5)); ghz > 0)
      return 1e3 * ghz;
  }
  return positive(value_of(cpuinfo, "cpu MHz"));
}

/// "32K" and "35840K" of the kernel's cache files.
Bytes cache_size(std::string_view text) {
  const auto parsed = parse_bytes(trimmed(text));
  return parsed ? *parsed : Bytes{};
}

ProcessorCaches caches_of(const SystemFiles& files) {
  constexpr int kMostCaches = 8;
  ProcessorCaches caches;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string folder = kCpuFolder + "cpu0/cache/index" + std::to_string(i) + "/";
    const auto level = files(folder + "level");
    if (!level) break;
    if (trimmed(files(folder + "type").value_or("")) == "Instruction") continue;
    const Bytes size = cache_size(files(folder + "size").value_or(""));
    const std::string_view which = trimmed(*level);
    if (which == "1") caches.l1 = size;
    if (which == "2") caches.l2 = size;
    if (which != "3") continue;
    caches.l3 = size;
    caches.l3_sharing = std::max(1, count_cpu_list(files(folder + "shared_cpu_list").value_or("")));
  }
  return caches;
}

/// Distinct sets of threads that share a core; 0 when the topology is hidden.
int physical_cores_of(const SystemFiles& files, const std::vector<int>& online) {
  std::set<std::string> cores;
  for (const int processor : online) {
    const auto siblings =
        files(kCpuFolder + "cpu" + std::to_string(processor) + "/topology/thread_siblings_list");
    if (!siblings) return 0;
    cores.insert(*siblings);
  }
  return static_cast<int>(cores.size());
}

double threads_per_core_in(std::string_view cpuinfo) {
  const double siblings = positive(value_of(cpuinfo, "siblings"));
  const double cores = positive(value_of(cpuinfo, "cpu cores"));
  return siblings > 0 && cores > 0 ? std::max(1.0, siblings / cores) : 1;
}

bool agree(Bytes a, Bytes b) { return a.count() <= 0 || b.count() <= 0 || a == b; }

}  // namespace

Processor processor_from(const SystemFiles& files) {
  const std::string cpuinfo = files("/proc/cpuinfo").value_or("");
  const std::vector<int> online = cpu_list(files(kCpuFolder + "online").value_or(""));
  Processor processor;
  processor.name = name_in(cpuinfo);
  processor.vendor = vendor_in(cpuinfo);
  processor.logical_cores = static_cast<int>(online.size());
  processor.physical_cores = physical_cores_of(files, online);
  processor.threads_per_core = threads_per_core_in(cpuinfo);
  processor.simd = simd_in(cpuinfo);
  processor.simd_bits = simd_bits_of(processor.simd);
  processor.clock_mhz = clock_of(files, cpuinfo, processor.name);
  processor.caches = caches_of(files);
  return processor;
}

Processor this_processor() {
  Processor processor = processor_from(system_files());
  struct utsname system {};
  if (processor.name.empty() && ::uname(&system) == 0) processor.name = system.machine;
  return processor;
}

bool same_processor(const Processor& a, const Processor& b) {
  const bool same_width = a.simd_bits == 0 || b.simd_bits == 0 || a.simd_bits == b.simd_bits;
  return simplified(a.name) == simplified(b.name) && same_width &&
         agree(a.caches.l1, b.caches.l1) && agree(a.caches.l2, b.caches.l2);
}

}  // namespace stoker
