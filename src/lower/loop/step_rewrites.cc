#include "lower/loop/step_rewrites.h"

#include <optional>
#include <utility>

#include "rewrite/checkpoint.h"
#include "rewrite/compile/compiled_step.h"
#include "rewrite/fused_loss.h"
#include "rewrite/shard.h"

namespace stoker {
namespace {

/// Steps of inference run on each GPU by themselves.
bool is_shared(const Step& step, const Job& job) {
  return step.mode == "train" && job.gpus > 1 && job.parallel != Parallel::kDdp;
}

std::optional<ShardPrecision> shard_precision(const Job& job) {
  if (job.fsdp_precision == FsdpPrecision::kNone) return std::nullopt;
  const bool fp16 = job.precision == Precision::kAmpFp16 || job.precision == Precision::kFp16;
  const DType half = fp16 ? DType::kF16 : DType::kBf16;
  const bool wide = job.fsdp_precision == FsdpPrecision::kReduceFp32;
  return ShardPrecision{.computed = half, .reduced = wide ? DType::kF32 : half};
}

Result<Step> shared_step(const Step& step, const Job& job) {
  if (job.parallel == Parallel::kDataParallel) return data_parallel_step(step, job.gpus);
  const int ranks = job.fsdp_group > 0 ? job.fsdp_group : job.gpus;
  return sharded_step(step, {.ranks = ranks,
                             .reshard_after_forward = job.parallel == Parallel::kFsdpZero3,
                             .dimensions = job.dimensions,
                             .precision = shard_precision(job),
                             .replicas = job.gpus / ranks,
                             .offload = job.fsdp_offload});
}

}  // namespace

Result<std::optional<Step>> rewritten_step(const Step& step, const Job& job) {
  std::optional<Step> result;
  if (step.compiled_graphs > 0) result = compiled_step(step);
  if (job.loss == LossKernel::kFused) {
    auto fused = TRY(with_fused_loss(result ? *result : step));
    result = std::move(fused);
  }
  if (!job.checkpoint.empty()) {
    auto checkpointed = TRY(with_checkpointing(result ? *result : step, job.checkpoint));
    result = std::move(checkpointed);
  }
  if (is_shared(step, job)) {
    auto shared = TRY(shared_step(result ? *result : step, job));
    result = std::move(shared);
  }
  return result;
}

}  // namespace stoker
