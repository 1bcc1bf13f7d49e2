#pragma once

#include "base/result.h"
#include "cli/run_options.h"
#include "device/machine.h"

namespace stoker::cli {

/// Refuses flags that the device has no use for: `--threads` on a GPU; on a CPU whatever is said of
/// CUDA, of several GPUs or of copies between two memories.
[[nodiscard]] Status check_device_flags(const RunOptions& o, const Gpu& device);

/// On a CPU: the threads of its operators, all cores when nothing was said.
[[nodiscard]] Status fill_threads(const JobOptions& o, const Gpu& device, Job& job);

/// Refuses a step that was captured for the other kind of device: PyTorch dispatches other operators.
[[nodiscard]] Status check_capture(const Step& step, const Gpu& device, const std::string& model);

}  // namespace stoker::cli
