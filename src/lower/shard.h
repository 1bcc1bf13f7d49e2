#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

struct ShardSettings {
  std::int64_t ranks = 2;
  bool reshard_after_forward = true;  ///< ZeRO-3; false: ZeRO-2
};

/// The step as one rank of torch.distributed.fsdp.fully_shard runs it, each repeated block a unit
/// and the rest another: sharded parameters and gradients (and so optimizer state), parameters
/// gathered around each unit's forward and backward, gradients reduced and scattered after it, one
/// unit prefetched. Collectives are operators of the step (`stoker::all_gather`,
/// `stoker::reduce_scatter`). Source: torch/distributed/fsdp/_fully_shard.
[[nodiscard]] Result<Step> sharded_step(const Step& step, const ShardSettings& settings);

/// The step as GPU 0 of nn.DataParallel runs it: its own share of the batch, and for all GPUs the
/// scattered inputs, gathered outputs, the loss over the whole batch and the reduced gradients.
/// Source: torch/nn/parallel.
[[nodiscard]] Result<Step> data_parallel_step(const Step& step, std::int64_t gpus);

}  // namespace stoker
