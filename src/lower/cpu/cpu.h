#pragma once

#include "base/diagnostics.h"
#include "base/result.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker {

/// Refuses what only GPUs have, in words: several devices, TF32, cuDNN's benchmark, CUDA graphs.
[[nodiscard]] Status check_cpu(const Job& job);

/// The job as PyTorch runs it on a CPU: an optimizer whose loop nobody chose goes tensor by tensor
/// (torch/optim/optimizer.py, _default_to_fused_or_foreach: foreach is no CPU's default), and no
/// library keeps a workspace in PyTorch's allocator.
[[nodiscard]] Job job_on_cpu(Job job);

/// Says where a step was captured for another device than the CPU that runs it.
void note_cpu(const Step& step, Diagnostics& diagnostics);

}  // namespace stoker
