#pragma once

#include <utility>

#include "base/result.h"
#include "lower/job.h"
#include "lower/program.h"
#include "machine/machine.h"
#include "step/step.h"

namespace stoker::accuracy {

/// timm's train.py with its defaults: fp32, SGD with Nesterov momentum and weight decay 2e-5
/// (foreach on CUDA), cudnn.benchmark, zero_grad after the step, PrefetchLoader
/// (huggingface/pytorch-image-models, train.py).
[[nodiscard]] Job timm_train_job();

/// That job, with its prefetching loader, as this machine runs it.
[[nodiscard]] Result<Program> timm_train_program(const Step& step, const Job& job,
                                                 const Machine& machine);

/// timm's benchmark.py --bench train --amp under PyTorch 1.12: SGD with Nesterov momentum one
/// tensor at a time, cudnn.benchmark, no fused attention, cuBLAS workspaces outside the allocator.
[[nodiscard]] Job timm_benchmark_job(bool channels_last);

/// timm's PrefetchLoader: batches arrive as bytes and are cast to floats on a side stream; the
/// generator, its consumer and the batch in the making hold three float batches between them
/// (timm/data/loader.py).
void use_prefetching_loader(Program& program);

/// One batch made before the first step and used by all of them.
void reuse_input(Program& program);

/// zero_grad() that fills gradients with zeros, the default before PyTorch 2.0: from the second
/// step on a gradient is computed beside `.grad` and added to it. Two halves, for the step and for
/// what was lowered from it.
[[nodiscard]] Step with_kept_gradients(Step step);
void keep_gradients(Program& program);

/// A backward inside autocast: the 16-bit copies of the weights live until the context ends, which
/// is after it.
[[nodiscard]] Step with_autocast_until_end(Step step);

/// Of a row of the benchmark's table: the step as that script ran it.
[[nodiscard]] inline Step as_timm_benchmark(Step step) {
  return with_kept_gradients(with_autocast_until_end(std::move(step)));
}

}  // namespace stoker::accuracy
