#include "lower/cpu/cpu_kernels.h"

#include <string_view>

#include "lower/common/math_units.h"
#include "lower/cpu/cpu_attention.h"
#include "lower/cpu/cpu_convolution.h"
#include "lower/cpu/cpu_work.h"

namespace stoker {
namespace {

bool is_convolution(KernelClass kernel_class) {
  return kernel_class == KernelClass::kConvolution ||
         kernel_class == KernelClass::kDepthwiseConvolution;
}

}  // namespace

bool CallChain::follows(bool backward, std::uint32_t op_index, const Operator& op) {
  /// What a module's own Python issues at most; beyond, a recurrent layer is at work in C++.
  constexpr int kFromPython = 24;
  if (op_index == last_op_) return chained_;
  last_op_ = op_index;
  const bool same_module = index(op.module) == module_ && backward == backward_;
  run_ = same_module ? run_ + 1 : 0;
  // Gradients that meet are added by the engine, which gives them no node: link 0.
  chained_ = backward ? op.link == link_ || op.link == 0 : run_ > kFromPython;
  module_ = index(op.module), link_ = op.link, backward_ = backward;
  return chained_;
}

bool CpuKernels::allocates(std::uint32_t op_index) const {
  return is_convolution(l_.step.family_of(l_.step.operators[op_index]).kernel_class);
}

void CpuKernels::join(const Operator& op, std::vector<Work>& work) const {
  join_for_cpu(l_.step, op, l_.sizes, work);
}

MathUnit CpuKernels::unit_of(const Work& work) const { return unit_for(work, l_.job, cpu_); }

void CpuKernels::describe(std::uint32_t op_index, const Operator& op, Kernel& kernel) {
  const bool backward = l_.emit.phase() == StepPhase::kBackward;
  std::string_view function = l_.step.name_of(op).function();
  const bool has_sum = op.outputs.size() == 1;
  if (has_sum && l_.plan.sums.in_place[index(op.outputs[0].storage)]) function = "add_";
  kernel.function = l_.emit.function(function);
  kernel.strided = crosses_rows(l_.step, op, l_.sizes);
  kernel.chained = chain_.follows(backward, op_index, op);
}

void CpuKernels::product(const Launch& launch) { l_.emit.launch(launch.kernel); }

void CpuKernels::convolution(const Launch& launch, const ConvolutionShape& shape) {
  // Outputs of the backward are those that are wanted, in the order input, weight, bias.
  const auto& wanted = l_.step.attributes_of(launch.op).gradients;
  const bool first = shape.pass != Pass::kBackwardWeight || (!wanted.empty() && !wanted[0]);
  const std::size_t output = first ? 0 : 1;
  const auto allocate = [&] {
    if (output < launch.op.outputs.size())
      launch.allocate(static_cast<std::uint32_t>(index(launch.op.outputs[output].storage)));
  };
  emit_cpu_convolution(l_.emit, {shape, launch.kernel.dtype, threads(), launch.op.module},
                       launch.kernel, allocate);
}

AttentionBackend CpuKernels::attention_backend(const AttentionShape& shape, DType,
                                               const Attributes& attributes) const {
  return choose_cpu_attention(shape, attributes);
}

SavedBuffers CpuKernels::fused_attention_forward(const Launch& launch,
                                                 const AttentionShape& shape) {
  return emit_cpu_attention_forward(l_.emit, shape, launch.kernel, threads(), launch.op.module);
}

void CpuKernels::fused_attention_backward(const Launch& launch, const AttentionShape& shape) {
  emit_cpu_attention_backward(l_.emit, shape, launch.kernel, threads(), launch.op.module);
}

}  // namespace stoker
