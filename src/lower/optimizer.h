#pragma once

#include <vector>

#include "lower/emitter.h"
#include "lower/job.h"

namespace stoker {

/// One parameter that the optimizer updates.
struct TrainedParameter {
  Bytes bytes;
  DType dtype = DType::kF32;
  ModuleId module{};
};

/// Emits `optimizer.step()`: state at its first call, temporaries, kernels. The recipes are those
/// of torch/optim (foreach, fused and for-loop variants); docs/memory-model.md and
/// docs/time-model.md list them.
void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<TrainedParameter>& parameters);

}  // namespace stoker
