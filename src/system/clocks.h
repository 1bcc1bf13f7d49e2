#pragma once

#include "base/units.h"

namespace stoker {

/// Time that only goes forward (CLOCK_MONOTONIC).
[[nodiscard]] Nanos wall_time();
/// CPU time of the calling thread.
[[nodiscard]] Nanos thread_cpu_time();
/// CPU time of all threads of this process and of its children that ended.
[[nodiscard]] Nanos process_cpu_time();

}  // namespace stoker
