#include "system/contention.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "system/clocks.h"
#include "system/processor_ticks.h"

namespace stoker {
namespace {

/// "on_cpu waited slices" of /proc/thread-self/schedstat, in nanoseconds.
Nanos queued_in(const std::string& schedstat) {
  const auto fields = split(trimmed(schedstat), ' ');
  if (fields.size() < 2) return {};
  return Nanos(decimal_number(fields[1]).value_or(0));
}

}  // namespace

Nanos run_queue_wait() {
  return queued_in(system_files()("/proc/thread-self/schedstat").value_or(""));
}

ContentionClocks contention_clocks(const SystemFiles& files) {
  const ProcessorTicks ticks = processor_ticks(files);
  return {.wall = wall_time(),
          .cpu = thread_cpu_time(),
          .queued = queued_in(files("/proc/thread-self/schedstat").value_or("")),
          .ticks = ticks.all,
          .stolen_ticks = ticks.steal};
}

Contention contention_between(const ContentionClocks& before, const ContentionClocks& after) {
  Contention found;
  const Nanos wall = after.wall - before.wall;
  const Nanos cpu = after.cpu - before.cpu;
  if (wall.count() <= 0 || cpu.count() <= 0) return found;
  found.wall_per_cpu = std::max(1.0, wall / cpu);
  found.run_queue_share = std::clamp((after.queued - before.queued) / wall, 0.0, 1.0);
  const double ticks = after.ticks - before.ticks;
  if (ticks > 0)
    found.steal_share = std::clamp((after.stolen_ticks - before.stolen_ticks) / ticks, 0.0, 1.0);
  found.disturbed = found.wall_per_cpu > kDisturbedWallPerCpu ||
                    found.run_queue_share > kDisturbedShare || found.steal_share > kDisturbedShare;
  return found;
}

}  // namespace stoker
