#pragma once

#include <span>
#include <vector>

#include "device/machine.h"
#include "program/program.h"
#include "timing/common/coefficients.h"
#include "timing/common/step_time.h"

namespace stoker {

/// One steady step of `program`, on the machine's GPUs or on its CPU.
[[nodiscard]] StepTime predict_step(const Program& program, const Machine& machine,
                                    const Coefficients& coefficients,
                                    const StepTimeOptions& options = {});

/// The steps of one program on several numbers of GPUs, each by its options, which differ in `gpus`
/// and `nodes` alone: its kernels are costed once.
[[nodiscard]] std::vector<StepTime> predict_steps(const Program& program, const Machine& machine,
                                                  const Coefficients& coefficients,
                                                  std::span<const StepTimeOptions> options);

/// The steady time of each of the program's passes, in their order. `step_time` is predict_step's
/// for the same arguments; its band holds for the passes too.
[[nodiscard]] std::vector<PassTime> predict_passes(const Program& program,
                                                   const StepTime& step_time,
                                                   const Machine& machine,
                                                   const Coefficients& coefficients,
                                                   const StepTimeOptions& options = {});

}  // namespace stoker
