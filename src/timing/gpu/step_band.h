#pragma once

#include <vector>

#include "device/host/host_speed.h"
#include "timing/collective/collectives.h"
#include "timing/common/step_time.h"
#include "timing/gpu/kernel_cost.h"

/// Internal to src/timing.
namespace stoker {

/// What the host's times leave open.
struct HostDoubt {
  /// Whose speed they were scaled by; null: they are of the very host.
  const HostSpeed* speed = nullptr;
  /// By how much of the step it would be shorter or longer, were the host faster or slower by its
  /// times' spread.
  double below = 0, above = 0;
};
/// 90 % relative half-width of the host's times.
[[nodiscard]] double host_spread(const Coefficients& coefficients, const HostSpeed* speed);

/// Fills band, basis, class_device and uncosted_share from the residual spreads of the classes that
/// the step spends its time in (docs/models/time.md, "Bands").
void add_band(const Program& program, const std::vector<KernelCost>& costs, const CostModel& model,
              const AllReduceModel& all_reduce, const HostDoubt& host, StepTime& out);

}  // namespace stoker
