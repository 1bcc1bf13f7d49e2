#pragma once

#include <algorithm>

namespace stoker {

/// Nobody can try an answer beyond.
inline constexpr int kMostGpus = 1024;

/// GPUs of the fullest node when a job's are spread over `nodes`: its host shares cores and memory
/// among most processes, and all others wait for it. A number of nodes below 1 counts as one.
[[nodiscard]] constexpr int gpus_per_node(int gpus, int nodes) {
  const int computers = std::max(1, nodes);
  return std::max(1, (gpus + computers - 1) / computers);
}

/// Whether each of `nodes` gets as many GPUs: a job that is started on several nodes has the same
/// number of processes on each.
[[nodiscard]] constexpr bool spreads_evenly(int gpus, int nodes) {
  return gpus % std::max(1, nodes) == 0;
}

/// DataLoader workers for each of `processes` on a host: one a core, at least one.
[[nodiscard]] constexpr int workers_of_cores(double cores, int processes) {
  return std::max(1, static_cast<int>(cores) / processes);
}

}  // namespace stoker
