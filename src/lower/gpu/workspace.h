#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "device/machine.h"
#include "program/job.h"
#include "work/work.h"

namespace stoker {

/// Workspace of the cuBLAS handle of one thread, allocated by its first matrix product and kept for
/// ever (PyTorch, ATen/cuda/CublasHandlePool.cpp): :4096:2:16:8, 32 MiB on Hopper and (since
/// PyTorch 2.12) on Blackwell, 32 MiB under ROCm and 128 on an MI300. Versions:
/// docs/models/memory.md.
[[nodiscard]] Bytes cublas_workspace(const Gpu& gpu);
/// Workspace of the cuBLAS handle of one thread, of the size that the job names where it does.
[[nodiscard]] Bytes cublas_workspace(const Gpu& gpu, const Job& job);

/// Workspace of cuBLASLt (linear layers with a bias), one a thread like cuBLAS's and kept like it.
/// nullopt: it uses cuBLAS's, as PyTorch does since 2.12 where nothing else is set. A job that
/// names a size gets one of its own, as with TORCH_CUBLASLT_UNIFIED_WORKSPACE=0.
[[nodiscard]] std::optional<Bytes> cublaslt_workspace(const Gpu& gpu, const Job& job);

/// CUBLAS_WORKSPACE_CONFIG: ":4096:2:16:8" is 4096 KiB twice and 16 KiB eight times.
[[nodiscard]] Result<Bytes> parse_cublas_workspace_config(std::string_view text);
/// CUBLASLT_WORKSPACE_SIZE, in KiB.
[[nodiscard]] Result<Bytes> parse_cublaslt_workspace_size(std::string_view text);

/// The workspace that a convolution asks for at each call; nullopt when its algorithm needs none.
/// `input`, `output`, `weight` are the bytes of the layer's tensors: tensor-core kernels want all
/// three in another layout, and keep the copies there. Rules and the rows they rest on:
/// docs/accuracy.md.
[[nodiscard]] std::optional<Bytes> convolution_workspace(const ConvolutionShape& shape, Bytes input,
                                                         Bytes output, Bytes weight,
                                                         CudnnProfile profile);

}  // namespace stoker
