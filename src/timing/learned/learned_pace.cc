#include "timing/learned/learned_pace.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stoker {

LearnedPace learned_pace(const Calibration* calibration, int threads) {
  LearnedPace pace;
  pace.classes.fill(1);
  if (calibration == nullptr) return pace;
  const auto take = [&](const std::string& name, double& factor) {
    const MeasuredFigure* figure = find_figure(*calibration, name, threads);
    if (figure == nullptr) figure = find_figure(*calibration, name, 0);
    if (figure == nullptr || !(figure->value > 0)) return;
    factor = figure->value;
    pace.any = true;
  };
  for (std::size_t c = 0; c < kKernelClasses; ++c)
    take(std::string(name_of(static_cast<KernelClass>(c))) + "_pace", pace.classes[c]);
  take("host_pace", pace.host);
  take("step_pace", pace.step);
  return pace;
}

void apply_pace(const LearnedPace& pace, const Program& program, StepTime& time) {
  if (!pace.any) return;
  std::array<Nanos, kStepPhases> operators{}, later{};
  std::vector<Nanos> scaled = time.kernel_times;
  const auto factor_of = [&](const Kernel& kernel) {
    const auto c = static_cast<std::size_t>(kernel.kernel_class);
    return pace.step * (c < kKernelClasses ? pace.classes[c] : 1);
  };
  for (std::size_t k = 0; k < scaled.size() && k < program.kernels.size(); ++k)
    scaled[k] = scaled[k] * factor_of(program.kernels[k]);
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t times) {
    if (k >= scaled.size()) return;
    const auto phase = static_cast<std::size_t>(kernel.phase);
    operators[phase] += time.kernel_times[k] * static_cast<double>(times);
    later[phase] += scaled[k] * static_cast<double>(times);
  });
  const double host = pace.host * pace.step;
  const Nanos device_before = time.device;
  Nanos total, device;
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    const Nanos around = std::max(Nanos(0), time.phase_elapsed[p] - operators[p]);
    time.phase_elapsed[p] = later[p] + around * host;
    time.phase_host[p] = time.phase_host[p] * host;
    if (operators[p].count() > 0)
      time.phase_device[p] = time.phase_device[p] * (later[p] / operators[p]);
    total += time.phase_elapsed[p];
    device += time.phase_device[p];
  }
  for (std::size_t c = 0; c < kKernelClasses; ++c)
    time.class_device[c] = time.class_device[c] * (pace.step * pace.classes[c]);
  if (device_before.count() > 0) {
    for (Nanos& part : time.bound_device) part = part * (device / device_before);
  }
  if (total.count() > 0 && time.total.count() > 0) time.mfu *= time.total / total;
  time.total = total;
  time.device = device;
  time.host = time.host * host;
  time.exposed_host = time.exposed_host * host;
  time.kernel_times = std::move(scaled);
  time.basis += ", corrected by training runs";
}

}  // namespace stoker
