#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "input/loader/loader_timeline.h"
#include "plan/plan.h"

namespace stoker {

/// One setting among those around a plan, as a chart of all of them needs it.
struct GridSetting {
  Precision precision = Precision::kFp32;
  int gpus = 1;
  std::int64_t batch = 1;  ///< per GPU
  int workers = 0;         ///< per GPU
  bool input_known = false;
  bool chosen = false;  ///< the plan's own
  MemoryVerdictWord verdict = MemoryVerdictWord::kDoesNotFit;
  Figure device_peak;  ///< bytes
  /// All of these are 0 where the setting does not fit.
  Figure samples_per_s, step_ms, gpu_busy;
  Figure epoch_s, epoch_cost, gpu_hours_per_epoch;  ///< 0: the data's size, or a price, is unknown
  LimiterFact limiter;
};

/// What surrounds a plan, for a chart of it; the plan itself was searched more finely.
struct PlanPicture {
  /// Every precision and number of GPUs that the plan looked at, over batches from small to the
  /// first that does not fit, each with the loader that suits its number of GPUs best.
  std::vector<GridSetting> grid;
  LoaderTimeline loader;  ///< of the best settings, rank 0; empty when nothing is known of the data
};

[[nodiscard]] Result<PlanPicture> picture_of(const PlanRequest& request, const Knowledge& knowledge,
                                             const Plan& plan);

}  // namespace stoker
