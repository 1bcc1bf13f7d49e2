#pragma once

#include <vector>

#include "device/machine.h"
#include "program/program.h"
#include "timing/common/coefficients.h"
#include "timing/common/step_time.h"

/// A step on the processor itself: operators one after another, each issued and executed by the
/// same threads. Internal to src/timing.
namespace stoker {

[[nodiscard]] StepTime predict_cpu_step(const Program& program, const Cpu& cpu, const Host& host,
                                        const Coefficients& coefficients,
                                        const StepTimeOptions& options);

[[nodiscard]] std::vector<PassTime> predict_cpu_passes(const Program& program,
                                                       const StepTime& step_time, const Cpu& cpu,
                                                       const Host& host,
                                                       const StepTimeOptions& options);

}  // namespace stoker
