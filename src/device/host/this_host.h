#pragma once

#include "device/machine.h"
#include "system/machine_facts.h"

namespace stoker {

/// The host by what the system says: cores = min(affinity, quota), memory = min(MemTotal, limit). A
/// figure that is not known is left at its default and named in `assumption`.
[[nodiscard]] Host host_from(const HostLimits& limits, const MemoryFacts& memory);

/// This computer, as this process may use it.
[[nodiscard]] Host this_host();

}  // namespace stoker
