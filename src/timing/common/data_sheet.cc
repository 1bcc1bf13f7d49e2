#include "timing/common/data_sheet.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// FP64 to FP32 on data-centre chips 1:2; elsewhere 1:32 (CUDA C++ Programming Guide, arithmetic
/// throughput).
constexpr double kDoubleRateServer = 0.5, kDoubleRateConsumer = 1.0 / 32;

bool has_fast_double(const Gpu& gpu) {
  const int cc = gpu.compute_capability;
  return gpu.architecture == Architecture::kCdna || cc == 60 || cc == 70 || cc == 80 || cc == 90 ||
         cc == 100;
}

}  // namespace

double usable_figure(double value, double stand_in, double highest, bool& guessed) {
  if (std::isfinite(value) && value > 0) return std::min(value, highest);
  guessed = true;
  return stand_in;
}

Peak peak_of(const Gpu& gpu, MathUnit unit, double fp32) {
  const PeakRates& p = gpu.peak;
  const auto ok = [](double x) { return std::isfinite(x) && x > 0; };
  const auto clip = [](double x) { return std::min(x, kHighestFlops); };
  switch (unit) {
    case MathUnit::kTf32Tensor:
      if (ok(p.tf32_tensor)) return {clip(p.tf32_tensor), true};
      return {fp32, false};
    case MathUnit::kFp16Tensor:
      if (ok(p.fp16_tensor)) return {clip(p.fp16_tensor), true};
      if (ok(p.fp16)) return {clip(p.fp16), false};
      // P100 doubles FP16; other GPUs without tensor cores compute half precision in FP32.
      return {gpu.compute_capability == 60 ? 2 * fp32 : fp32, false};
    case MathUnit::kBf16Tensor:
      if (ok(p.bf16_tensor)) return {clip(p.bf16_tensor), true};
      return {fp32, false};  // emulated: converted to FP32
    case MathUnit::kFp16:
      if (ok(p.fp16)) return {clip(p.fp16), false};
      return {gpu.compute_capability == 60 ? 2 * fp32 : fp32, false};
    case MathUnit::kFp64:
      return {fp32 * (has_fast_double(gpu) ? kDoubleRateServer : kDoubleRateConsumer), false};
    case MathUnit::kInteger:
    case MathUnit::kFp32:
      break;
  }
  return {fp32, false};
}

double nominal_peak(const Gpu& gpu, MathUnit unit) {
  bool guessed = false;
  return peak_of(gpu, unit, usable_figure(gpu.peak.fp32, kStandInFlops, kHighestFlops, guessed))
      .rate;
}

double nominal_peak(const Cpu& cpu) {
  bool guessed = false;
  return usable_figure(cpu.peak.fp32, kStandInFlops, kHighestFlops, guessed);
}

}  // namespace stoker
