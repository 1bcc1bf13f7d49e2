#pragma once

#include "device/gpu.h"
#include "lower/common/operator_kernels.h"

namespace stoker {

/// Operators on a GPU: cuBLAS, cuBLASLt and cuDNN with their workspaces.
class GpuKernels final : public OperatorKernels {
 public:
  GpuKernels(const Gpu& gpu, const Lowering& lowering, LibraryState& libraries, BatchBuffers& batch)
      : OperatorKernels(lowering, batch), gpu_(gpu), libraries_(libraries) {}

  [[nodiscard]] bool allocates(std::uint32_t) const override { return false; }

 private:
  void join(const Operator&, std::vector<Work>&) const override {}
  [[nodiscard]] MathUnit unit_of(const Work& work) const override;
  void describe(std::uint32_t, const Operator&, Kernel&) override {}
  void product(const Launch& launch) override;
  void convolution(const Launch& launch, const ConvolutionShape& shape) override;
  [[nodiscard]] AttentionBackend attention_backend(const AttentionShape& shape, DType dtype,
                                                   const Attributes& attributes) const override;
  void open_product_library(ModuleId module) override;
  [[nodiscard]] SavedBuffers fused_attention_forward(const Launch& launch,
                                                     const AttentionShape& shape) override;
  void fused_attention_backward(const Launch& launch, const AttentionShape& shape) override;

  void keep_workspace(Handles& handles, Bytes bytes, ModuleId module);
  void launch_with_workspace(const Kernel& kernel, Buffer workspace);

  const Gpu& gpu_;
  LibraryState& libraries_;
};

}  // namespace stoker
