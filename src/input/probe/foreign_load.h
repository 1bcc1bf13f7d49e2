#pragma once

#include <string>

#include "base/units.h"
#include "input/probe/probe.h"

namespace stoker {

/// Above this ratio of wall to CPU time of a thread that never sleeps, others were on its core
/// (docs/models/input.md, "Foreign load").
inline constexpr double kDisturbedWallPerCpu = 1.10;
/// Share of the wall time spent in the run queue, or taken by the hypervisor, that counts as
/// disturbed.
inline constexpr double kDisturbedShare = 0.05;

/// Watches the calling thread from construction to finish(): how much of the wall time it was kept
/// from its core. Only Linux' /proc is asked; where a file is missing its share stays zero.
class LoadMeter {
 public:
  LoadMeter();
  [[nodiscard]] ForeignLoad finish() const;

 private:
  Nanos wall_, cpu_, queued_;
  double steal_ = 0, ticks_ = 0;
};

/// Nanoseconds that the calling thread has waited in the run queue (schedstat's second field).
[[nodiscard]] Nanos run_queue_wait();

}  // namespace stoker
