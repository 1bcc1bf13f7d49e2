#include "timing/gpu/gpu_rates.h"

#include <algorithm>
#include <cmath>

#include "timing/common/data_sheet.h"

namespace stoker {
namespace {

/// Stand-ins for figures that a GPU's data lack, so that every answer stays finite; `guessed`
/// tells.
constexpr double kStandInBandwidth = 4e11;  ///< bytes/s
constexpr double kStandInClock = 1.5e9;     ///< Hz
constexpr double kStandInPcie = 1.6e10;     ///< bytes/s, 3.0 x16
constexpr double kHighestBandwidth = 1e15;
/// Matrix units double the FP32 rate of CDNA GPUs in GEMMs (data sheets of MI100 to MI300X: 46.1
/// against 23.1).
constexpr double kCdnaMatrix = 2;
/// FP16 FLOPs of an SM in one clock that Hopper's tensor cores reach through mma.sync: on average
/// 62.9 % of their peak (Luo et al., arXiv 2501.12084, section 6.2, on an H800; 65.3 % in dense
/// FP16); taken for what came after it too. Narrower tensor cores have no other instruction.
constexpr double kWarpLevelWidth = 0.629 * 4096;

double energy_pj(const Gpu& gpu, const PowerCoefficients& power) {
  switch (gpu.architecture) {
    case Architecture::kKepler:
    case Architecture::kMaxwell:
      return power.pj_28nm;
    case Architecture::kPascal:
      return power.pj_16nm;
    case Architecture::kVolta:
    case Architecture::kTuring:
      return power.pj_12nm;
    case Architecture::kAda:
    case Architecture::kHopper:
    case Architecture::kBlackwell:
      return power.pj_5nm;
    case Architecture::kAmpere:
      // Consumer Ampere and A10, A40, A6000 are made in Samsung's 8 nm process.
      return gpu.compute_capability == 80 ? power.pj_7nm : power.pj_8nm;
    default:
      return power.pj_7nm;
  }
}

/// FLOPs of one SM in one clock at `rate`. Where the clock is unknown it follows from the FP32
/// rate.
double width_of(const Gpu& gpu, double rate, double fp32, int sms) {
  double clock = gpu.boost_mhz * 1e6;
  if (!(std::isfinite(clock) && clock > 0)) {
    clock = gpu.fp32_cores_per_sm > 0 ? fp32 / (2.0 * gpu.fp32_cores_per_sm * sms) : kStandInClock;
  }
  return rate / (sms * clock);
}

}  // namespace

GpuRates gpu_rates(const Gpu& gpu, const Coefficients& coefficients) {
  GpuRates device;
  device.architecture = gpu.architecture;
  device.has_bf16 = gpu.vendor != Vendor::kNvidia || gpu.peak.bf16_tensor > 0;
  double fp32 = usable_figure(gpu.peak.fp32, kStandInFlops, kHighestFlops, device.guessed);
  if (gpu.architecture == Architecture::kCdna) fp32 *= kCdnaMatrix;
  device.bandwidth =
      usable_figure(gpu.bandwidth, kStandInBandwidth, kHighestBandwidth, device.guessed);
  bool no_pcie = false;  // too small a part of a step to widen a band for
  device.pcie = usable_figure(gpu.pcie_bandwidth, kStandInPcie, kHighestBandwidth, no_pcie);
  device.l2_bytes = static_cast<double>(std::max<std::int64_t>(0, gpu.l2.count()));
  device.sms = std::clamp(gpu.sm_count, 1, 1 << 16);

  const PowerCoefficients& power = coefficients.power;
  const bool has_tdp = std::isfinite(gpu.tdp_watts) && gpu.tdp_watts > 0;
  const double cap =
      has_tdp ? power.share * gpu.tdp_watts / (energy_pj(gpu, power) * 1e-12) : kHighestFlops;
  const KernelCoefficients& kernel = coefficients.kernel;
  for (std::size_t i = 0; i < kMathUnits; ++i) {
    const auto unit = static_cast<MathUnit>(i);
    const Peak peak = peak_of(gpu, unit, fp32);
    double rate = peak.rate;
    double unit_cap = cap;
    if (peak.tensor) {
      const bool tf32 = unit == MathUnit::kTf32Tensor;
      // TF32 peaks are half of FP16's on the same GPU, and so is the reference.
      const double reference = kernel.tensor_reference * (tf32 ? 0.5 : 1.0);
      const double width =
          width_of(gpu, rate, peak_of(gpu, MathUnit::kFp32, fp32).rate, device.sms);
      const double wide = std::max(1.0, width / reference);
      const double legacy = std::min(width, kWarpLevelWidth * (tf32 ? 0.5 : 1.0));
      unit_cap *= tf32 ? power.tf32_tensor : power.half_tensor;
      device.product[i] =
          std::min(unit_cap, rate * std::pow(wide, kernel.tensor_gemm_exponent - 1));
      device.warp_level[i] = std::min(
          unit_cap, rate * legacy / width *
                        std::pow(std::max(1.0, legacy / reference), kernel.tensor_exponent - 1));
      rate *= std::pow(wide, kernel.tensor_exponent - 1);
    } else if (peak.rate > fp32) {
      unit_cap *= peak.rate / fp32;  // packed FP16: two FLOPs for the energy of one
    }
    device.capped[i] = unit_cap < rate;
    device.rate[i] = std::min(rate, unit_cap);
    if (!peak.tensor) device.product[i] = device.warp_level[i] = device.rate[i];
    device.tensor[i] = peak.tensor;
  }
  return device;
}

}  // namespace stoker
