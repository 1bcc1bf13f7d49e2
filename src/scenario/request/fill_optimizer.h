#pragma once

#include "base/result.h"
#include "scenario/request/request.h"
#include "step/step.h"

namespace stoker {

/// The captured optimizer with what the request says otherwise. Refuses settings that the optimizer
/// does not have.
[[nodiscard]] Result<OptimizerSettings> optimizer_of(const OptimizerRequest& request,
                                                     const Step& step);

}  // namespace stoker
