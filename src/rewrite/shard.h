#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// torch.distributed.fsdp.MixedPrecisionPolicy: what parameters are gathered and computed in, and
/// what gradients are reduced in. Shards, their gradients and optimizer state are FP32.
struct ShardPrecision {
  DType computed = DType::kBf16;
  DType reduced = DType::kF32;
};

struct ShardSettings {
  std::int64_t ranks = 2;             ///< that share one copy of the model
  bool reshard_after_forward = true;  ///< ZeRO-3; false: ZeRO-2
  /// Where a parameter's number of rows is a dimension of the step (a vocabulary), it is cut at
  /// this value (in the user's terms, as in Sizes::at); unnamed ones have their default.
  std::map<std::string, std::int64_t> dimensions{};
  std::optional<ShardPrecision> precision{};  ///< nullopt: everything as captured
  /// Hybrid sharding: groups of `ranks` that hold a copy each and sum their gradients.
  std::int64_t replicas = 1;
  /// CPUOffloadPolicy: shards, their gradients and the optimizer's state lie in the host's memory.
  /// Parameters then count as updated elsewhere: they have no gradient on the device.
  bool offload = false;
};

/// The step as one rank of torch.distributed.fsdp.fully_shard runs it, each repeated block a unit
/// and the rest the root: sharded parameters and gradients (and so optimizer state), parameters
/// gathered around each unit's forward and backward, gradients reduced and scattered after it, one
/// unit prefetched. Source: torch/distributed/fsdp/_fully_shard; docs/models/parallel.md.
///
/// What it adds are operators of the step, in the module of the unit:
///   stoker::all_gather_copy_in      shards -> the gathered buffer      on kCommunication
///   stoker::shard_to_device         shards -> a copy on the device     with `offload`
///   stoker::gradient_to_host        the sharded gradients leave        with `offload`
///   stoker::all_gather              the gathered buffer, in place      on kCommunication
///   stoker::all_gather_copy_out     -> unsharded parameters            awaits its all_gather
///   stoker::reduce_scatter_copy_in  gradients -> the reduction's input awaits the last reduction
///   stoker::reduce_scatter          -> the sharded gradients           on kCommunication
///   stoker::all_reduce              the shards' sum over replicas    on kCommunication
/// plan_step tells streams and waits. Backward's end awaits every reduction. Parameters keep their
/// storage, which now holds the shard; the gradients of one unit share one storage, the reduction's
/// output. With `precision` a step captured in half precision keeps FP32 shards; of one captured
/// under autocast the casts of parameters and of their gradients are gone, the rest is as captured.
/// Batch dimensions are untouched: a step may be cut or checkpointed before it is sharded.
[[nodiscard]] Result<Step> sharded_step(const Step& step, const ShardSettings& settings);

/// The step as GPU 0 of nn.DataParallel runs it: its own share of the batch, and for all GPUs the
/// scattered inputs, gathered outputs, the loss over the whole batch and the reduced gradients. Its
/// inputs are the whole batch's. Source: torch/nn/parallel; docs/models/parallel.md.
///
/// Added: stoker::scatter, stoker::gather, stoker::broadcast, stoker::reduce; all on the compute
/// stream.
[[nodiscard]] Result<Step> data_parallel_step(const Step& step, std::int64_t gpus);

}  // namespace stoker
