#pragma once

#include <vector>

#include "device/gpu.h"
#include "program/job.h"
#include "program/program.h"

namespace stoker {

/// The libraries that a program loads.
struct Libraries {
  bool cublas = false, cudnn = false;
};
[[nodiscard]] Libraries libraries_of(const Program& program);

/// What lies on a GPU outside PyTorch's allocator: named terms, each with its basis. A machine
/// file's context_memory stands for context and libraries together.
[[nodiscard]] std::vector<OutsideMemory> outside_of_gpu(const Job& job, const Gpu& gpu,
                                                        Libraries used);

}  // namespace stoker
