#pragma once

#include <functional>

#include "lower/common/emitter.h"
#include "work/work.h"

namespace stoker {

/// Whether PyTorch hands an fp32 convolution to oneDNN rather than to its own loops
/// (ATen/native/Convolution.cpp, ConvParams::use_mkldnn; other precisions always go there).
[[nodiscard]] bool onednn_takes(const ConvolutionShape& shape, int threads);

/// One pass of a convolution on a CPU.
struct CpuConvolution {
  const ConvolutionShape& shape;
  DType dtype = DType::kF32;
  int threads = 1;
  ModuleId module{};
};

/// Launches the kernel between the allocations of its call: copies of the operands in oneDNN's
/// blocked layouts, scratch, and (by `output`, called once) the tensor that comes out. The sequence
/// is that of ATen/native/mkldnn/Conv.cpp, checked against recorded calls
/// (docs/models/cpu-memory.md).
void emit_cpu_convolution(Emitter& emit, const CpuConvolution& convolution, const Kernel& kernel,
                          const std::function<void()>& output);

}  // namespace stoker
