#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

struct ShardSettings {
  std::int64_t ranks = 2;
  bool reshard_after_forward = true;  ///< ZeRO-3; false: ZeRO-2
  /// Where a parameter's number of rows is a dimension of the step (a vocabulary), it is cut at
  /// this value (in the user's terms, as in Sizes::at); unnamed ones have their default.
  std::map<std::string, std::int64_t> dimensions{};
};

/// The step as one rank of torch.distributed.fsdp.fully_shard runs it, each repeated block a unit
/// and the rest the root: sharded parameters and gradients (and so optimizer state), parameters
/// gathered around each unit's forward and backward, gradients reduced and scattered after it, one
/// unit prefetched. Source: torch/distributed/fsdp/_fully_shard; docs/models/parallel.md.
///
/// What it adds are operators of the step, in the module of the unit:
///   stoker::all_gather_copy_in      shards -> the gathered buffer      on kCommunication
///   stoker::all_gather              the gathered buffer, in place      on kCommunication
///   stoker::all_gather_copy_out     -> unsharded parameters            awaits its all_gather
///   stoker::reduce_scatter_copy_in  gradients -> the reduction's input awaits the last reduction
///   stoker::reduce_scatter          -> the sharded gradients           on kCommunication
/// plan_step tells streams and waits. Backward's end awaits every reduction. Parameters keep their
/// storage, which now holds the shard; the gradients of one unit share one storage, the reduction's
/// output. Batch dimensions are untouched: a step may be cut or checkpointed before it is sharded.
[[nodiscard]] Result<Step> sharded_step(const Step& step, const ShardSettings& settings);

/// The step as GPU 0 of nn.DataParallel runs it: its own share of the batch, and for all GPUs the
/// scattered inputs, gathered outputs, the loss over the whole batch and the reduced gradients. Its
/// inputs are the whole batch's. Source: torch/nn/parallel; docs/models/parallel.md.
///
/// Added: stoker::scatter, stoker::gather, stoker::broadcast, stoker::reduce; all on the compute
/// stream.
[[nodiscard]] Result<Step> data_parallel_step(const Step& step, std::int64_t gpus);

}  // namespace stoker
