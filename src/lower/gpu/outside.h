#pragma once

#include <vector>

#include "device/machine.h"
#include "program/job.h"
#include "program/program.h"

namespace stoker {

/// What lies on the device outside PyTorch's allocator (on a CPU: in the process before its model): named terms, each with its basis. A library
/// that nothing in `program` calls is not loaded. gpu.context_memory of a machine file stands for
/// context and libraries together.
[[nodiscard]] std::vector<OutsideMemory> outside_memory(const Job& job, const Machine& machine,
                                                        const Program& program);

/// As above, for a program that uses all libraries.
[[nodiscard]] std::vector<OutsideMemory> outside_memory(const Job& job, const Machine& machine);

}  // namespace stoker
