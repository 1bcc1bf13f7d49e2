#pragma once

#include <string>

#include "base/result.h"
#include "input/probe/probe.h"
#include "scenario/sources/tools.h"

namespace stoker::cli {

/// What scenarios need of the outside: Python's captures, and probes that show their progress.
[[nodiscard]] ScenarioTools scenario_tools();

/// Probes a folder with progress on stderr from the second second on.
[[nodiscard]] Result<Probe> probe_with_progress(const std::string& folder,
                                                const ProbeOptions& options);

}  // namespace stoker::cli
