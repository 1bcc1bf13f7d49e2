#pragma once

#include <string>

#include "base/result.h"
#include "device/machine.h"
#include "scenario/request/request.h"
#include "step/step.h"

namespace stoker {

/// Every number of a request within what the table of settings allows, and a price that is one.
[[nodiscard]] Status check_ranges(const RunRequest& request);

/// Refuses what the device has no use for: threads on a GPU; on a CPU whatever is said of CUDA, of
/// several GPUs or of copies between two memories.
[[nodiscard]] Status check_device_settings(const RunRequest& request, const Device& device);

/// Refuses what belongs to training where the step was captured for inference.
[[nodiscard]] Status check_training_settings(const RunRequest& request, const Step& step);

/// The threads of a CPU's operators, all cores when nothing was said; 0 on a GPU.
[[nodiscard]] Result<int> threads_of(const JobRequest& request, const Device& device);

/// Refuses a step that was captured for the other kind of device: PyTorch dispatches other
/// operators.
[[nodiscard]] Status check_capture(const Step& step, const Device& device,
                                   const std::string& model);

/// A step was captured at one size of images; another needs another capture.
[[nodiscard]] Status check_image_size(const DataRequest& request, const Step& step);

}  // namespace stoker
