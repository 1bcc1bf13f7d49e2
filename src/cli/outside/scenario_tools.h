#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "input/probe/probe.h"
#include "scenario/sources/tools.h"

namespace stoker::cli {

/// How a training script is run to capture its step: limits, and what it may reach.
struct ScriptRun {
  std::string time_limit, max_host_memory;  ///< seconds; "8G"
  std::string fake_data;                    ///< in place of torchvision's data sets: 3x224x224
  bool allow_network = false;
  std::optional<bool> compile = {};  ///< torch.compile in place of what the script does with it
};

/// What scenarios need of the outside: Python's captures, and probes that show their progress.
[[nodiscard]] ScenarioTools scenario_tools(const ScriptRun& script = {});

/// Probes a folder with progress on stderr from the second second on.
[[nodiscard]] Result<Probe> probe_with_progress(const std::string& folder,
                                                const ProbeOptions& options);

}  // namespace stoker::cli
