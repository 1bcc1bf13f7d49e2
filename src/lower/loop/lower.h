#pragma once

#include <optional>

#include "base/result.h"
#include "device/machine.h"
#include "lower/common/step_plan.h"
#include "program/job.h"
#include "program/program.h"
#include "step/step.h"

namespace stoker {

/// Turns a step into what this machine would execute and allocate for this job. Every choice that
/// decides bytes and time at once is made here and nowhere else: attention backend, arithmetic
/// unit, convolution workspace, optimizer kernels and state, accumulation, gradient buckets,
/// copies. Refuses jobs that the step cannot serve (another precision, a dimension out of range).
[[nodiscard]] Result<Program> lower(const Step& step, const Job& job, const Machine& machine);

/// What of a lowering is the same at every batch: the step that the job runs instead of the
/// captured one. A search over batches prepares once.
struct PreparedStep {
  const Step* captured = nullptr;  ///< not owned
  std::optional<Step> rewritten;   ///< checkpointed, sharded; absent: the captured one runs
  StepPlan plan;                   ///< of the step that runs

  [[nodiscard]] const Step& runs() const { return rewritten ? *rewritten : *captured; }
};
[[nodiscard]] Result<PreparedStep> prepare(const Step& step, const Job& job);
/// `job` may differ from the one that the step was prepared for in batch and last batch alone.
[[nodiscard]] Result<Program> lower(const PreparedStep& prepared, const Job& job,
                                    const Machine& machine);

}  // namespace stoker
