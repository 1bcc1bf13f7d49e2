#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "input/loader/loader_simulation.h"
#include "input/pipeline/pipeline_probe.h"
#include "input/probe/probe.h"
#include "input/probe/sample_cost.h"
#include "system/host_limits.h"

namespace stoker {

/// A trouble that users of a DataLoader report, foreseen from a probe or a simulation
/// (docs/models/recommendations.md lists all).
struct Finding {
  std::string name;  ///< stable identifier, snake_case: "shared_memory_too_small"
  Severity severity = Severity::kNote;  ///< kNote: good to know; kWarning: costs time or the run
  std::string evidence;                 ///< one sentence with the numbers
  std::string cure;                     ///< what to do, in one sentence
};

/// A loader in its settings on its host before its training loop. Pointers are not owned.
struct LoaderCase {
  LoaderSettings settings;
  SampleCost sample;
  HostShare host;
  Consumer consumer;
  HostLimits limits;  ///< zeros where unknown (another host): the rules that need them are silent
  const Probe* folder = nullptr;            ///< what the sample's cost was measured from, if so
  const PipelineProbe* pipeline = nullptr;  ///< likewise
  std::string network_storage;  ///< kind of network file system that holds the data; "": none
};

/// All findings, warnings first. Simulates the case and a dozen of its neighbours.
[[nodiscard]] std::vector<Finding> diagnose(const LoaderCase& loader);

/// How this Python starts a DataLoader's workers on Linux when nobody says: fork, from 3.14 on
/// forkserver (https://docs.python.org/3.14/library/multiprocessing.html). `version` as "3.11.7".
[[nodiscard]] StartMethod default_start_method(std::string_view version);

}  // namespace stoker
