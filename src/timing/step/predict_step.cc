#include "timing/step/predict_step.h"

#include <utility>

#include "timing/cpu/cpu_step.h"
#include "timing/gpu/gpu_step.h"

namespace stoker {

StepTime predict_step(const Program& program, const Machine& machine,
                      const Coefficients& coefficients, const StepTimeOptions& options) {
  return std::move(predict_steps(program, machine, coefficients, std::span(&options, 1)).front());
}

std::vector<StepTime> predict_steps(const Program& program, const Machine& machine,
                                    const Coefficients& coefficients,
                                    std::span<const StepTimeOptions> options) {
  std::vector<StepTime> times;
  if (options.empty()) return times;
  machine.device.visit(
      [&](const Gpu& gpu) {
        const GpuStepModel model(program, gpu, coefficients, options.front());
        for (const StepTimeOptions& o : options) times.push_back(model.predict(machine, o));
      },
      [&](const Cpu& cpu) {
        for (const StepTimeOptions& o : options)
          times.push_back(predict_cpu_step(program, cpu, machine.host, coefficients, o));
      });
  return times;
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
