#pragma once

#include <vector>

#include "device/machine.h"
#include "program/program.h"
#include "timing/common/coefficients.h"
#include "timing/common/step_time.h"

/// A step on GPUs: kernels costed, collectives timed, launched by a host that runs ahead. Internal
/// to src/timing.
namespace stoker {

[[nodiscard]] StepTime predict_gpu_step(const Program& program, const Gpu& gpu,
                                        const Machine& machine, const Coefficients& coefficients,
                                        const StepTimeOptions& options);

[[nodiscard]] std::vector<PassTime> predict_gpu_passes(const Program& program,
                                                       const StepTime& step_time,
                                                       const Machine& machine,
                                                       const Coefficients& coefficients,
                                                       const StepTimeOptions& options);

}  // namespace stoker
