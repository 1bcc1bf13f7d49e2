#include "timing/cpu/cpu_rates.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace stoker {
namespace {

// What stands in where neither data sheet nor calibration says anything.
constexpr double kClock = 2.5e9;          ///< Hz: servers of the last ten years, all cores at work
constexpr double kFlopsPerLaneCycle = 4;  ///< two fused multiply-adds in a cycle
constexpr int kSimdBits = 256;
constexpr double kL2Bytes = 1 << 20;          ///< of a core
constexpr double kL3Bytes = 1.5 * (1 << 20);  ///< a core's share
/// One core does not fill the memory's channels: its outstanding misses allow some 10 to 14 GB/s
/// (64 bytes, 12 to 16 of them, 80 to 100 ns).
constexpr double kCoreMemory = 12e9;
constexpr double kMemory = 40e9;  ///< bytes/s
/// Bytes of a core in a cycle that copies reach from its second-level cache and from the last-level
/// one.
constexpr double kL2BytesPerCycle = 20, kL3BytesPerCycle = 7;
/// Share of the data sheet's rate that large products reach.
constexpr double kProductShare = 0.85;
/// Opening and closing a parallel region of OpenMP whose threads still spin.
constexpr double kRegion = 1.5e-6, kRegionThread = 0.1e-6;
/// Share of an operator's time that more threads shorten, where neither threads nor figures tell
/// it.
constexpr double kParallel = 0.9;

// Microseconds on a core of relative speed 1, PyTorch 2.13 on a server CPU (docs/models/time.md, "A
// step").
constexpr double kForwardUs = 6.5, kBackwardUs = 5.5, kOptimizerUs = 2.5, kViewUs = 1.1,
                 kStepUs = 60, kCallUs = 1.2;
constexpr double kFaultUs = 0.25;  ///< a fault that clears 4 KiB, kernel 5 or 6 on a server CPU

double or_else(double value, double otherwise) {
  return std::isfinite(value) && value > 0 ? value : otherwise;
}

/// Time of one unit at `threads` by Amdahl's law from times at other numbers of threads.
double amdahl(const std::map<int, double>& times, int threads) {
  const auto above = times.lower_bound(threads);
  if (above != times.end() && above->first == threads) return above->second;
  const auto inverse = [](int t) { return 1.0 / t; };
  if (times.size() == 1) {
    const auto& [t, time] = *times.begin();
    const double one = time / (1 - kParallel + kParallel / t);
    return one * (1 - kParallel + kParallel / threads);
  }
  auto right = above == times.end() ? std::prev(above) : above;
  if (right == times.begin()) ++right;
  const auto left = std::prev(right);
  const double slope =
      (left->second - right->second) / (inverse(left->first) - inverse(right->first));
  const double time = right->second + slope * (inverse(threads) - inverse(right->first));
  if (above == times.end()) {  // beyond: never better than in proportion, never worse than measured
    const double best = right->second * right->first / threads;
    return std::clamp(time, best, std::max(best, right->second));
  }
  return std::max(time, 1e-30);
}

}  // namespace

double figure_at(const Calibration* calibration, std::string_view name, int threads, bool rate) {
  if (calibration == nullptr) return 0;
  std::map<int, double> times;
  double any = 0;
  for (const MeasuredFigure& figure : calibration->figures) {
    if (figure.name != name || !(figure.value > 0)) continue;
    if (figure.threads <= 0) any = figure.value;
    else times[figure.threads] = rate ? 1 / figure.value : figure.value;
  }
  if (times.empty()) return any;
  if (rate) return 1 / amdahl(times, threads);
  // Times of the host hardly know how many threads wait: the nearest measured number of them.
  auto nearest = times.begin();
  for (auto it = times.begin(); it != times.end(); ++it) {
    if (std::abs(it->first - threads) < std::abs(nearest->first - threads)) nearest = it;
  }
  return nearest->second;
}

int threads_of(const Cpu& cpu, int asked) { return std::max(1, asked > 0 ? asked : cpu.cores); }

CpuRates cpu_rates(const Cpu& cpu, int threads) {
  const Calibration* measured = cpu.calibration.get();
  const int cores = std::max(1, cpu.cores);
  const double used = std::min(threads, cores);  // more threads than cores take turns
  CpuRates r;
  r.threads = threads;
  r.lanes = or_else(cpu.simd_bits, kSimdBits) / 32;
  double clock = or_else(cpu.clock_mhz * 1e6, 0);
  if (clock <= 0) clock = or_else(cpu.peak.fp32 / (cores * r.lanes * kFlopsPerLaneCycle), kClock);
  r.cycles = clock * used;
  const double peak = or_else(cpu.peak.fp32 / cores, clock * r.lanes * kFlopsPerLaneCycle);
  r.products =
      or_else(1e9 * figure_at(measured, "fma_gflops", threads, true), kProductShare * peak * used);
  const double all = or_else(cpu.bandwidth, kMemory);
  const double core = std::min(all, std::max(kCoreMemory, all / cores));
  r.memory =
      or_else(1e9 * figure_at(measured, "copy_gbs", threads, true), std::min(all, core * used));
  r.l2 = or_else(1e9 * figure_at(measured, "l2_gbs", threads, true),
                 std::max(r.memory, kL2BytesPerCycle * r.cycles));
  r.l3 = or_else(1e9 * figure_at(measured, "l3_gbs", threads, true),
                 std::max(r.memory, std::min(r.l2, kL3BytesPerCycle * r.cycles)));
  r.l2_bytes = or_else(static_cast<double>(cpu.l2.count()), kL2Bytes) * used;
  r.l3_bytes = or_else(static_cast<double>(cpu.l3.count()), kL3Bytes * cores);
  if (threads > 1) {
    const Micros region(figure_at(measured, "region_us", threads, false));
    r.region = Seconds(or_else(as_seconds(region).count(), kRegion + kRegionThread * threads));
  }
  return r;
}

CpuHost cpu_host(const Cpu& cpu, int threads, double core_speed) {
  const Calibration* measured = cpu.calibration.get();
  const double speed = or_else(core_speed, 1);
  const auto of = [&](const char* name, double prior) {
    return as_seconds(Micros(or_else(figure_at(measured, name, threads, false), prior / speed)));
  };
  CpuHost host;
  host.forward = of("forward_us", kForwardUs);
  host.backward = of("backward_us", kBackwardUs);
  host.optimizer = of("optimizer_us", kOptimizerUs);
  host.view = of("view_us", kViewUs);
  host.step = of("step_us", kStepUs);
  host.fault = of("fault_us", kFaultUs);
  host.call = of("call_us", kCallUs);
  host.measured = figure_at(measured, "forward_us", threads, false) > 0;
  return host;
}

}  // namespace stoker
