#include "lower/loop/step_rewrites.h"

#include <utility>

#include "rewrite/checkpoint.h"
#include "rewrite/shard.h"

namespace stoker {
namespace {

/// Steps of inference run on each GPU by themselves.
bool is_shared(const Step& step, const Job& job) {
  return step.mode == "train" && job.gpus > 1 && job.parallel != Parallel::kDdp;
}

Result<Step> shared_step(const Step& step, const Job& job) {
  if (job.parallel == Parallel::kDataParallel) return data_parallel_step(step, job.gpus);
  return sharded_step(step, {.ranks = job.gpus,
                             .reshard_after_forward = job.parallel == Parallel::kFsdpZero3,
                             .dimensions = job.dimensions});
}

}  // namespace

Result<std::optional<Step>> rewritten_step(const Step& step, const Job& job) {
  std::optional<Step> result;
  if (!job.checkpoint.empty()) {
    auto checkpointed = TRY(with_checkpointing(step, job.checkpoint));
    result = std::move(checkpointed);
  }
  if (is_shared(step, job)) {
    auto shared = TRY(shared_step(result ? *result : step, job));
    result = std::move(shared);
  }
  return result;
}

}  // namespace stoker
