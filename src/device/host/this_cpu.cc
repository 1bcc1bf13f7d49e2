#include "device/host/this_cpu.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/setting.h"
#include "base/text.h"
#include "device/calibration_data.h"
#include "device/host/host_speed.h"

namespace stoker {
namespace {

/// What one core moves from and to memory, bytes/s: two-socket servers of 2017 to 2023 are measured
/// at 10 to 14 GB/s a core by STREAM with one thread. A guess by intention, with a ceiling of eight
/// channels of DDR4-3200 (JEDEC JESD79-4: 25.6 GB/s each).
constexpr double kBandwidthPerCore = 10e9;
constexpr double kMostBandwidth = 204.8e9;
/// Units for fused multiply-adds in one core: two in Intel's server cores since Haswell and AMD's
/// since Zen 2 (Intel 64 and IA-32 Optimization Reference Manual, ports 0 and 1 or 5; AMD 17h
/// Software Optimization Guide, section 2.11). A machine file's fp32_tflops overrules it.
constexpr double kVectorUnits = 2;
constexpr int kBitsOfFloat = 32;
/// Where the clock cannot be read.
constexpr double kUsualClockMhz = 2500;

/// The value of the first line "key : value" of /proc/cpuinfo.
std::string_view fact(std::string_view cpuinfo, std::string_view key) {
  while (!cpuinfo.empty()) {
    const std::size_t end = std::min(cpuinfo.find('\n'), cpuinfo.size());
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(std::min(end + 1, cpuinfo.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

double number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::isfinite(value) && value > 0 ? value : 0;
}

bool has_word(std::string_view words, std::string_view word) {
  for (const std::string& one : split(words, ' ')) {
    if (one == word) return true;
  }
  return false;
}

/// x86 and Arm; 0: not told.
int simd_bits_of(std::string_view cpuinfo) {
  const std::string_view x86 = fact(cpuinfo, "flags"), arm = fact(cpuinfo, "Features");
  if (has_word(x86, "avx512f")) return 512;
  if (has_word(x86, "avx2") || has_word(x86, "avx")) return 256;
  if (has_word(x86, "sse2") || has_word(arm, "asimd") || has_word(arm, "neon")) return 128;
  return 0;
}

/// In MHz: the highest that the governor allows, else what the name says, else the present one.
double clock_of(const SystemFiles& files, std::string_view cpuinfo) {
  const auto highest = files("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (highest) {
    if (const double khz = number(trimmed(*highest)); khz > 0) return khz / 1e3;
  }
  const std::string_view name = fact(cpuinfo, "model name");
  if (const auto at = name.rfind("@ "); at != std::string_view::npos && name.ends_with("GHz")) {
    if (const double ghz = number(trimmed(name.substr(at + 2, name.size() - at - 5))); ghz > 0)
      return 1e3 * ghz;
  }
  return number(fact(cpuinfo, "cpu MHz"));
}

/// "32K" and "35840K" of the kernel's cache files.
Bytes cache_size(std::string_view text) {
  const auto parsed = parse_bytes(trimmed(text));
  return parsed ? *parsed : Bytes{};
}

void read_caches(const SystemFiles& files, Cpu& cpu) {
  constexpr int kMostCaches = 8;
  for (int i = 0; i < kMostCaches; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const auto level = files(folder + "level");
    if (!level) return;
    if (trimmed(files(folder + "type").value_or("")) == "Instruction") continue;
    const Bytes size = cache_size(files(folder + "size").value_or(""));
    const int sharing = std::max(1, count_cpu_list(files(folder + "shared_cpu_list").value_or("")));
    const std::string_view which = trimmed(*level);
    if (which == "1") cpu.l1 = size;
    if (which == "2") cpu.l2 = size;
    if (which == "3") cpu.l3 = size * std::max(1, cpu.cores / sharing);
  }
}

/// Threads that share one core's vector units.
double threads_per_core(std::string_view cpuinfo) {
  const double siblings = number(fact(cpuinfo, "siblings"));
  const double cores = number(fact(cpuinfo, "cpu cores"));
  return siblings > 0 && cores > 0 ? std::max(1.0, siblings / cores) : 1;
}

/// 90 % half-width of how far one kind of operator tells of all.
constexpr double kDispatchSpread = 0.15;

/// How fast this processor issues work, where a calibration measured it or its name tells.
void take_dispatch(const Cpu& cpu, Host& host) {
  const MeasuredFigure* forward =
      cpu.calibration ? find_figure(*cpu.calibration, "forward_us", 0) : nullptr;
  if (forward != nullptr && forward->value > 0) {
    host.cpu = cpu.name;
    host.dispatch_speed = kReferenceForwardUs / forward->value;
    host.dispatch_spread = kDispatchSpread;
    host.dispatch_basis = "dispatch measured on it";
  } else if (const auto known = host_speed(cpu.name)) {
    host.cpu = cpu.name;
    host.dispatch_speed = known->speed, host.dispatch_spread = known->spread;
    host.dispatch_basis = known->basis;
  }
}

}  // namespace

double vector_peak(double cores, double clock_mhz, int simd_bits) {
  const double lanes = static_cast<double>(simd_bits) / kBitsOfFloat;
  return cores * clock_mhz * 1e6 * lanes * 2 * kVectorUnits;
}

Result<Cpu> cpu_from(const SystemFiles& files, const Host& host) {
  if (host.memory.count() <= 0) {
    return fail(ErrorCode::kIo,
                "the memory of this machine cannot be read; describe its CPU in a machine file "
                "([cpu], docs/reference/machine-file.md)",
                mark(Setting::kGpu) + " cpu");
  }
  const std::string cpuinfo = files("/proc/cpuinfo").value_or("");
  Cpu cpu;
  std::string_view name = fact(cpuinfo, "model name");
  if (name.empty()) name = fact(cpuinfo, "Hardware");
  cpu.name = name.empty() ? "CPU" : std::string(name);
  cpu.cores = std::max(1, static_cast<int>(std::lround(host.cores)));
  cpu.simd_bits = simd_bits_of(cpuinfo);
  cpu.clock_mhz = clock_of(files, cpuinfo);
  std::string guessed;
  if (cpu.clock_mhz <= 0) {
    cpu.clock_mhz = kUsualClockMhz;
    guessed += "clock 2.5 GHz, ";
  }
  const int width = cpu.simd_bits > 0 ? cpu.simd_bits : 128;
  const double cores = std::max(1.0, cpu.cores / threads_per_core(cpuinfo));
  cpu.peak.fp32 = vector_peak(cores, cpu.clock_mhz, width);
  read_caches(files, cpu);
  cpu.memory = cpu.usable_memory = host.memory;
  cpu.bandwidth = std::min(kMostBandwidth, kBandwidthPerCore * cpu.cores);
  char bandwidth[48];
  std::snprintf(bandwidth, sizeof bandwidth, "memory bandwidth %.0f GB/s", cpu.bandwidth * 1e-9);
  guessed += bandwidth;
  cpu.source = "/proc/cpuinfo, /sys/devices/system/cpu";
  cpu.assumption =
      "this CPU by its own facts, " + guessed + " a guess: a calibration of this CPU measures it";
  return cpu;
}

Result<Cpu> this_cpu(const Host& host) { return cpu_from(system_files(), host); }

Host host_of_cpu(const Cpu& cpu) {
  Host host;
  take_dispatch(cpu, host);
  host.name = "the machine file's CPU";
  host.cores = cpu.cores;
  host.memory = cpu.memory;
  host.shared_memory = cpu.memory / 2;  // tmpfs(5), as for a [host] without shm
  host.assumption = "/dev/shm is half of the memory";
  return host;
}

}  // namespace stoker
