#pragma once

#include <optional>

#include "base/units.h"
#include "lower/job.h"
#include "machine/machine.h"
#include "step/work.h"

namespace stoker {

/// Workspace of the cuBLAS handle of one thread, allocated by its first matrix product and kept for ever
/// (PyTorch, ATen/cuda/CublasHandlePool.cpp: :4096:2:16:8, and 32 MiB on Hopper).
[[nodiscard]] Bytes cublas_workspace(const Gpu& gpu);

/// A convolution's workspace, and in which iterations it is asked for.
struct ConvolutionWorkspace {
  Bytes bytes;
  bool first_iteration_only = false;
};

/// Rule of the cuDNN profile in force; nullopt when the algorithm needs none. `input`, `output`, `weight` are
/// the bytes of the layer's tensors. Rules and the rows they rest on: docs/memory-model.md.
[[nodiscard]] std::optional<ConvolutionWorkspace> convolution_workspace(const ConvolutionShape& shape, Bytes input,
                                                                        Bytes output, Bytes weight,
                                                                        CudnnProfile profile);

/// Bytes that cuDNN keeps from an RNN's forward for its backward: gates, cell and output of each time step.
/// cudnnGetRNNTrainingReserveSize is not public; this is an estimate.
[[nodiscard]] Bytes rnn_reserve(const RnnShape& shape, DType dtype);

}  // namespace stoker
