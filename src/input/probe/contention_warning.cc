#include <cstdio>

#include "input/probe/probe.h"

namespace stoker {

std::string contention_warning(const Contention& contention) {
  if (!contention.disturbed) return {};
  char text[240];
  std::snprintf(
      text, sizeof text,
      "The machine was busy while it was measured (%.0f %% more wall than CPU time, %.0f %% of the "
      "time in the run queue, %.0f %% stolen): repeat the probe on a quiet machine.",
      (contention.wall_per_cpu - 1) * 100, contention.run_queue_share * 100,
      contention.steal_share * 100);
  return text;
}

}  // namespace stoker
