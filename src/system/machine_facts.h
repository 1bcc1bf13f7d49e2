#pragma once

#include <optional>
#include <string>

#include "base/units.h"
#include "system/cgroup.h"
#include "system/gpu_devices.h"
#include "system/host_limits.h"
#include "system/processor.h"
#include "system/processor_ticks.h"

namespace stoker {

/// Memory of the machine and what this process may have of it; zero or absent: not known.
struct MemoryFacts {
  Bytes total;                       ///< MemTotal
  std::optional<MemoryLimit> limit;  ///< by the cgroup
  Bytes available;                   ///< MemAvailable: of the machine at present, without swapping

  /// The smaller of total and limit, of those that are known.
  [[nodiscard]] Bytes usable() const;
  /// What this process can have at present: `available`, and no more than the limit leaves.
  [[nodiscard]] Bytes available_here() const;
};

[[nodiscard]] MemoryFacts memory_from(const SystemFiles& files);

/// Everything that Stoker knows of the machine that it runs on and of this process's share of it.
struct MachineFacts {
  Processor processor;
  HostLimits limits;
  MemoryFacts memory;
  CgroupFolders cpu_cgroup;  ///< where a quota would stand
  std::string kernel;        ///< "6.1.0-13-amd64"
  GpuDevices gpus;
};

/// Facts by files alone: without /dev/shm's size and the limit of open files, which none tells.
[[nodiscard]] MachineFacts machine_facts_from(const SystemFiles& files,
                                              const SystemFolders& folders);

/// This computer, as this process may use it.
[[nodiscard]] MachineFacts this_machine_facts();

}  // namespace stoker
