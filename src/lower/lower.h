#pragma once

#include "base/result.h"
#include "lower/job.h"
#include "lower/program.h"
#include "machine/machine.h"
#include "step/step.h"

namespace stoker {

/// Turns a step into what this machine would execute and allocate for this job. Every choice that
/// decides bytes and time at once is made here and nowhere else: attention backend, arithmetic
/// unit, convolution workspace, optimizer kernels and state, accumulation, gradient buckets,
/// copies. Refuses jobs that the step cannot serve (another precision, a dimension out of range).
[[nodiscard]] Result<Program> lower(const Step& step, const Job& job, const Machine& machine);

}  // namespace stoker
