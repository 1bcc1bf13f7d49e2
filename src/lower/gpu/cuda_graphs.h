#pragma once

#include "base/diagnostics.h"
#include "base/result.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker {

/// Refuses a job that asks for CUDA graphs of a step that cannot be captured: one that the host
/// waits in, or that DataParallel or FSDP runs.
[[nodiscard]] Status check_cuda_graphs(const Step& step, const Job& job);

/// What the forecast of a captured step leaves out.
void note_cuda_graphs(const Job& job, Diagnostics& diagnostics);

}  // namespace stoker
