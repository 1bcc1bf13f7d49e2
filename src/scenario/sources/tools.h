#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "input/probe/probe.h"
#include "program/job.h"
#include "scenario/request/request.h"

namespace stoker {

/// Where a step is to run: PyTorch dispatches other operators on a CPU.
enum class ModelDevice : std::uint8_t { kGpu, kCpu };

/// A step that is not captured yet.
struct CaptureOrder {
  std::string spec;  ///< torchvision:NAME, timm:NAME, hf:ORG/NAME or FILE.py:FUNCTION
  Precision precision = Precision::kFp32;
  ModelDevice device = ModelDevice::kGpu;
  std::string mode;                      ///< train, forward, inference; "": as the function says
  std::vector<std::string> assumptions;  ///< FILE:LINE=VALUE, CaptureWishes::assumptions
  bool compile = false;                  ///< under torch.compile
  AdapterWish adapters = {};
  std::filesystem::path into;  ///< step file to write
  /// For a training script as it is: further words for `stoker capture`, its arguments last.
  std::optional<std::vector<std::string>> script = {};
};

/// The error of a child process that has said on the terminal what was wrong: nothing is to be
/// added.
[[nodiscard]] inline Error already_explained() {
  return {ErrorCode::kToldByChild, "a child process failed", {}};
}
[[nodiscard]] inline bool is_already_explained(const Error& error) {
  return error.code == ErrorCode::kToldByChild;
}

/// What resolving a request needs of the world outside of this process's own files: Python, and
/// somebody who sees the progress of a probe. Tests hand in their own.
struct ScenarioTools {
  std::function<Status(const CaptureOrder&)> capture;
  std::function<Result<Probe>(const std::string& folder, const ProbeOptions&)> probe_folder;
  std::string interpreter;               ///< tells one Python and its search path from another
  std::filesystem::path python_package;  ///< holds the code of the zoo's own models; "": unknown
};

}  // namespace stoker
