#include "input/probe/foreign_load.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace stoker {
namespace {

struct CpuTicks {
  double all = 0, steal = 0;
};

/// First line of /proc/stat: user nice system idle iowait irq softirq steal, then guest times that
/// user already contains.
CpuTicks machine_ticks() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  CpuTicks ticks;
  for (int field = 0; field < 8; ++field) {
    double value = 0;
    if (!(file >> value)) break;
    ticks.all += value;
    if (field == 7) ticks.steal = value;
  }
  return ticks;
}

}  // namespace

Nanos run_queue_wait() {
  std::ifstream file("/proc/thread-self/schedstat");
  double on_cpu = 0, waited = 0;
  return file >> on_cpu >> waited ? Nanos(waited) : Nanos{};
}

LoadMeter::LoadMeter() : wall_(wall_time()), cpu_(thread_cpu_time()), queued_(run_queue_wait()) {
  const CpuTicks ticks = machine_ticks();
  steal_ = ticks.steal;
  ticks_ = ticks.all;
}

ForeignLoad LoadMeter::finish() const {
  ForeignLoad load;
  const Nanos wall = wall_time() - wall_;
  const Nanos cpu = thread_cpu_time() - cpu_;
  if (wall.count() <= 0 || cpu.count() <= 0) return load;
  load.wall_per_cpu = std::max(1.0, wall / cpu);
  load.run_queue_share = std::clamp((run_queue_wait() - queued_) / wall, 0.0, 1.0);
  const CpuTicks ticks = machine_ticks();
  if (ticks.all > ticks_)
    load.steal_share = std::clamp((ticks.steal - steal_) / (ticks.all - ticks_), 0.0, 1.0);
  load.disturbed = load.wall_per_cpu > kDisturbedWallPerCpu ||
                   load.run_queue_share > kDisturbedShare || load.steal_share > kDisturbedShare;
  return load;
}

std::string foreign_load_warning(const ForeignLoad& load) {
  if (!load.disturbed) return {};
  char text[240];
  std::snprintf(
      text, sizeof text,
      "The machine was busy while it was measured (%.0f %% more wall than CPU time, %.0f %% of the "
      "time in the run queue, %.0f %% stolen): repeat the probe on a quiet machine.",
      (load.wall_per_cpu - 1) * 100, load.run_queue_share * 100, load.steal_share * 100);
  return text;
}

}  // namespace stoker
