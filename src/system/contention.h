#pragma once

#include "base/units.h"
#include "system/system_files.h"

namespace stoker {

/// Above this ratio of wall to CPU time of a thread that never sleeps, others were on its core
/// (docs/models/input.md).
inline constexpr double kDisturbedWallPerCpu = 1.10;
/// Share of the wall time spent in the run queue, or taken by the hypervisor, that counts as
/// disturbed.
inline constexpr double kDisturbedShare = 0.05;

/// How far others kept a measuring thread from its core.
struct Contention {
  double wall_per_cpu = 1;     ///< wall time over CPU time; 1 = nobody disturbed it
  double run_queue_share = 0;  ///< time spent waiting for a core / wall time, from schedstat
  double steal_share = 0;      ///< of the machine's time, taken by the hypervisor
  bool disturbed = false;      ///< above the limits named here: take the figures with care
};

/// The clocks that contention is told by; 0 where a file is missing. Ticks are the kernel's, of all
/// processors together.
struct ContentionClocks {
  Nanos wall, cpu;  ///< of the thread
  Nanos queued;     ///< what the thread waited in the run queue
  double ticks = 0, stolen_ticks = 0;
};

/// The clocks of the calling thread at present.
[[nodiscard]] ContentionClocks contention_clocks(const SystemFiles& files);

/// What passed between two readings; undisturbed where no time did.
[[nodiscard]] Contention contention_between(const ContentionClocks& before,
                                            const ContentionClocks& after);

/// Watches the calling thread from construction to finish().
class ContentionMeter {
 public:
  ContentionMeter() : before_(contention_clocks(system_files())) {}
  [[nodiscard]] Contention finish() const {
    return contention_between(before_, contention_clocks(system_files()));
  }

 private:
  ContentionClocks before_;
};

/// Nanoseconds that the calling thread has waited in the run queue (schedstat's second field).
[[nodiscard]] Nanos run_queue_wait();

}  // namespace stoker
