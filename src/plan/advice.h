#pragma once

#include <vector>

#include "plan/search.h"

namespace stoker {

/// What to do next, each what-if computed with the same models as the plan; most valuable first.
[[nodiscard]] Result<std::vector<Advice>> advise(const PlanRequest& request,
                                                 const Knowledge& knowledge,
                                                 const TriedSetting& best,
                                                 const std::vector<TriedSetting>& by_gpus,
                                                 const std::vector<TriedSetting>& by_precision,
                                                 const std::optional<InputPlan>& input);

}  // namespace stoker
