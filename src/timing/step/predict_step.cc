#include "timing/step/predict_step.h"

#include "timing/cpu/cpu_step.h"
#include "timing/gpu/gpu_step.h"

namespace stoker {

StepTime predict_step(const Program& program, const Machine& machine,
                      const Coefficients& coefficients, const StepTimeOptions& options) {
  return machine.device.visit(
      [&](const Gpu& gpu) {
        return predict_gpu_step(program, gpu, machine, coefficients, options);
      },
      [&](const Cpu& cpu) {
        return predict_cpu_step(program, cpu, machine.host, coefficients, options);
      });
}

std::vector<PassTime> predict_passes(const Program& program, const StepTime& step_time,
                                     const Machine& machine, const Coefficients& coefficients,
                                     const StepTimeOptions& options) {
  return machine.device.visit(
      [&](const Gpu&) {
        return predict_gpu_passes(program, step_time, machine, coefficients, options);
      },
      [&](const Cpu& cpu) {
        return predict_cpu_passes(program, step_time, cpu, machine.host, options);
      });
}

}  // namespace stoker
