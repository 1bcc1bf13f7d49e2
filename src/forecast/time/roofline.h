#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "forecast/forecast.h"

namespace stoker {

/// One operator of a step by what it computes, moves and takes, all its kernels of one step
/// together.
struct RooflinePoint {
  std::uint32_t source = 0;  ///< index into the operators of the step that runs
  std::string label;         ///< "aten::convolution (layer1.0.conv1)"
  KernelClass kernel_class = KernelClass::kUncosted;
  StepPhase phase = StepPhase::kForward;
  MathUnit unit = MathUnit::kFp32;
  Flops flops;
  Bytes bytes;
  Nanos time;
};

/// The operators that take longest before what the device could do at best, by its data sheet or
/// its calibration.
struct Roofline {
  std::vector<RooflinePoint> points;               ///< longest first
  double bandwidth = 0;                            ///< bytes/s
  std::vector<std::pair<MathUnit, double>> peaks;  ///< of the units that the points use, FLOP/s
};

/// `time` is the forecast's of this scenario. At most `most` points; those without arithmetic are
/// left out, and a CPU has none.
[[nodiscard]] Result<Roofline> roofline_of(const Scenario& scenario, const StepTime& time,
                                           std::size_t most);

}  // namespace stoker
