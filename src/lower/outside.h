#pragma once

#include <vector>

#include "lower/job.h"
#include "lower/program.h"
#include "machine/machine.h"

namespace stoker {

/// What lies on the device outside PyTorch's allocator: named terms, each with its basis.
[[nodiscard]] std::vector<OutsideMemory> outside_memory(const Job& job, const Machine& machine);

}  // namespace stoker
