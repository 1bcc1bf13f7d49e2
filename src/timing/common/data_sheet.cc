#include "timing/common/data_sheet.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// FP64 FLOPs in the time of one of FP32: multiprocessors' results in a clock by compute capability
/// (CUDA C++ Programming Guide, throughput of native arithmetic instructions), AMD's data sheets.
double double_share(const Gpu& gpu) {
  if (gpu.architecture == Architecture::kCdna) return gpu.chip == "gfx90a" ? 1.0 : 0.5;
  switch (gpu.compute_capability) {
    case 35:
    case 37:
      return 1.0 / 3;  // 64 of 192
    case 60:
    case 70:
    case 80:
    case 90:
    case 100:
      return 0.5;
    case 86:
    case 87:
    case 89:
    case 103:
    case 120:
    case 121:
      return 1.0 / 64;  // 2 of 128
    default:
      return 1.0 / 32;  // 4 of 128, 2 of 64
  }
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
      return {fp32 * double_share(gpu), false};
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
