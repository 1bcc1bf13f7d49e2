#pragma once

#include <array>

#include "device/gpu.h"
#include "program/program.h"
#include "timing/common/coefficients.h"

namespace stoker {

/// A GPU as the cost rules see it: sustained rates instead of data-sheet peaks. Made once for many
/// kernels.
struct GpuRates {
  /// Sustained FLOP/s by MathUnit; never zero. A unit that the GPU lacks has the rate of what
  /// stands in.
  std::array<double, 7> rate{};
  std::array<bool, 7> tensor{};     ///< whether the unit really is a tensor core here
  std::array<bool, 7> capped{};     ///< whether power limits that rate
  std::array<double, 7> product{};  ///< FLOP/s of single matrix products
  /// FLOP/s of kernels that issue the warp-level instructions of Ampere (mma.sync) on whatever came
  /// after it.
  std::array<double, 7> warp_level{};
  double bandwidth = 0;  ///< bytes/s, nameplate
  double l2_bytes = 0;
  double pcie = 0;  ///< bytes/s
  int sms = 1;
  Architecture architecture = Architecture::kOther;
  bool has_bf16 = true;  ///< arithmetic of its own for bf16
  bool guessed = false;  ///< a figure was missing from the GPU's data and a stand-in was used
};

/// Applies power cap, tensor discount and stand-ins for what the data sheet lacks.
[[nodiscard]] GpuRates gpu_rates(const Gpu& gpu, const Coefficients& coefficients);

}  // namespace stoker
