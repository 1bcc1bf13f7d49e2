#pragma once

#include <optional>

#include "base/result.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker {

/// The step as this job runs it on one GPU where that is another one than the captured: the loss
/// fused, activations checkpointed, then parameters sharded or the batch spread over the GPUs of
/// one process. nullopt: as captured.
[[nodiscard]] Result<std::optional<Step>> rewritten_step(const Step& step, const Job& job);

}  // namespace stoker
