#pragma once

#include <vector>

#include "timing/collective/collectives.h"
#include "timing/common/step_time.h"
#include "timing/gpu/kernel_cost.h"

/// Internal to src/timing.
namespace stoker {

/// Fills band, basis, class_device and uncosted_share from the residual spreads of the classes that
/// the step spends its time in (docs/models/time.md, "Bands").
void add_band(const Program& program, const std::vector<KernelCost>& costs, const CostModel& model,
              const AllReduceModel& all_reduce, StepTime& out);

}  // namespace stoker
