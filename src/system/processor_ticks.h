#pragma once

#include "system/system_files.h"

namespace stoker {

/// Ticks of all processors since the machine started, by the first line of /proc/stat (proc(5)); 0
/// where it cannot be read. Guest time is part of `user`.
struct ProcessorTicks {
  double all = 0;
  double busy = 0;   ///< all but idle, waiting for storage and stolen
  double steal = 0;  ///< the hypervisor ran others
};

[[nodiscard]] ProcessorTicks processor_ticks(const SystemFiles& files);

/// What others do with this machine at present.
struct MachineLoad {
  double seconds = 0;       ///< that were looked at; 0: not looked
  double others_share = 0;  ///< of all processors' time, by other processes
  double steal_share = 0;   ///< of all processors' time, by the hypervisor
  double load_average = 0;  ///< runnable and waiting for storage, mean of a minute (/proc/loadavg)
};

/// The load by two readings of the ticks. `own`: seconds of CPU that this process used in between;
/// `processors`: how many /proc/stat counts.
[[nodiscard]] MachineLoad load_between(const ProcessorTicks& before, const ProcessorTicks& after,
                                       double seconds, double own_seconds, int processors);

/// Looks for so many seconds, asleep.
[[nodiscard]] MachineLoad machine_load(double seconds);

}  // namespace stoker
