#pragma once

#include <string>
#include <vector>

#include "device/machine.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker {

/// The parts of a report's first line. Only a report of one GPU names it there.
struct ModelLine {
  std::string model, step, gpu, job;

  /// "resnet50 | train, SGD momentum, 224 px | V100-SXM2-16GB | DDP, eager, amp-fp16"
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string text_without_gpu() const;
};

[[nodiscard]] ModelLine model_line(const std::string& model, const Step& step, const Device& device,
                                   const Job& job);

/// What of the job differs from the plainest loop and is not in the model line, a phrase each.
[[nodiscard]] std::vector<std::string> unusual_settings(const Job& job);

}  // namespace stoker
