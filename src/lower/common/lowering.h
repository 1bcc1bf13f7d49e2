#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lower/common/device_backend.h"
#include "lower/common/emitter.h"
#include "lower/common/step_plan.h"
#include "program/job.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// What the parts of one walk over a step share: the step at its sizes, for whom, and where to.
struct Lowering {
  const Step& step;
  const Sizes& sizes;
  const StepPlan& plan;
  const Job& job;
  const DeviceBackend& device;
  Emitter& emit;
  /// An extra pass: what is born once is there already.
  bool extra = false;
  /// A forward with gradients that no backward follows: what autograd saved lives with the outputs.
  bool graph_kept = false;

  [[nodiscard]] bool training() const { return step.mode == "train"; }
  /// Gradients are reduced in buckets, by DistributedDataParallel.
  [[nodiscard]] bool buckets() const {
    return training() && (job.gpus > 1 || job.ddp_alone) && job.parallel == Parallel::kDdp;
  }
  [[nodiscard]] bool bucket_views() const { return buckets() && job.gradient_as_bucket_view; }
};

/// One of the micro-batches of an iteration.
struct MicroBatch {
  int index = 0;
  int count = 1;
  [[nodiscard]] bool first() const { return index == 0; }
  [[nodiscard]] bool last() const { return index + 1 == count; }
};

/// Takes back what was emitted from `from` on for the first iteration only: in another micro-batch
/// or an extra pass it has happened already.
void drop_births(std::vector<Instruction>& instructions, std::size_t from);

/// A memory-bound kernel over `bytes`, reading it `reads` times and writing it once.
[[nodiscard]] Kernel kernel_over(KernelClass kernel_class, Bytes bytes, std::int64_t reads,
                                 std::uint32_t launches);

}  // namespace stoker
