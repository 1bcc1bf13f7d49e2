#include "evidence/training/learned_machine.h"

#include <algorithm>
#include <memory>

namespace stoker {

LearnedMachine learned_machine(MachineFile file, const std::vector<ComparedRun>& runs,
                               const std::string& date) {
  LearnedMachine learned{std::move(file), {}};
  if (!learned.file.device) {
    learned.learning.why_not = "the file describes no device";
    return learned;
  }
  Device& described = *learned.file.device;
  DeviceFacts& device = described.facts();
  Calibration calibration = device.calibration != nullptr ? *device.calibration : Calibration{};
  learned.learning = learn_from(runs, calibration, described.cpu() != nullptr);
  if (!learned.learning.helps) return learned;
  for (const MeasuredFigure& figure : learned.learning.figures) set_figure(calibration, figure);
  const auto counted = std::ranges::count_if(runs, [](const ComparedRun& r) { return r.counts(); });
  learned.file.provenance["learned"] = date + ", from " + std::to_string(counted) +
                                       (counted == 1 ? " training run" : " training runs");
  learned.file.calibration = calibration_toml(calibration);
  device.calibrated = true;
  device.calibration = std::make_shared<const Calibration>(std::move(calibration));
  return learned;
}

}  // namespace stoker
