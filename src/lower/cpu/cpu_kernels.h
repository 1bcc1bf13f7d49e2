#pragma once

#include "device/cpu.h"
#include "lower/common/operator_kernels.h"

namespace stoker {

/// Tells which operators Python does not issue one by one.
class CallChain {
 public:
  /// Whether this operator comes out of the same call, or autograd node, as the one before.
  bool follows(bool backward, std::uint32_t op_index, const Operator& op);

 private:
  std::uint32_t last_op_ = Kernel::kSynthesized, link_ = 0;
  std::size_t module_ = 0;
  int run_ = 0;
  bool chained_ = false, backward_ = false;
};

/// Operators on a CPU: one call each, named by its ATen function; convolutions by oneDNN, whose
/// outputs come into being in the middle of the call.
class CpuKernels final : public OperatorKernels {
 public:
  CpuKernels(const Cpu& cpu, const Lowering& lowering, BatchBuffers& batch)
      : OperatorKernels(lowering, batch), cpu_(cpu) {}

  [[nodiscard]] bool allocates(std::uint32_t op_index) const override;

 private:
  void join(const Operator& op, std::vector<Work>& work) const override;
  [[nodiscard]] MathUnit unit_of(const Work& work) const override;
  void describe(std::uint32_t op_index, const Operator& op, Kernel& kernel) override;
  void product(const Launch& launch) override;
  void convolution(const Launch& launch, const ConvolutionShape& shape) override;
  [[nodiscard]] AttentionBackend attention_backend(const AttentionShape& shape, DType dtype,
                                                   const Attributes& attributes) const override;
  void open_product_library(ModuleId) override {}
  [[nodiscard]] SavedBuffers fused_attention_forward(const Launch& launch,
                                                     const AttentionShape& shape) override;
  void fused_attention_backward(const Launch& launch, const AttentionShape& shape) override;

  [[nodiscard]] int threads() const { return l_.job.threads > 0 ? l_.job.threads : cpu_.cores; }

  const Cpu& cpu_;
  CallChain chain_;
};

}  // namespace stoker
