#include "lower/common/operator_kernels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "lower/common/compiled_layout.h"

namespace stoker {

OperatorKernels::OperatorKernels(const Lowering& lowering, BatchBuffers& batch)
    : l_(lowering),
      compiled_channels_last_(compiled_channels_last(
          lowering.step, lowering.sizes,
          lowering.device.is_apart() ? CompiledFor::kGpu : CompiledFor::kCpu)),
      batch_(batch) {}

void OperatorKernels::run(std::uint32_t op_index, const Allocate& allocate) {
  const Operator& op = l_.step.operators[op_index];
  work_.clear();
  append_work(l_.step, op, l_.sizes, work_);
  join(op, work_);
  auto views = static_cast<std::uint16_t>(std::min(l_.step.attributes_of(op).views, 0xffff));
  std::uint16_t modules = l_.plan.calls[op_index];
  for (const Work& work : work_) {
    if (work.kernel_class == KernelClass::kUncosted && !l_.extra) {
      l_.emit.program().diagnostics.add(
          "uncosted_operator", Severity::kWarning,
          std::string(l_.step.operator_name(op)) + " has no cost rule; costed by its bytes");
    }
    launch(op_index, kernel_of(op_index, work, views, modules), allocate);
    views = modules = 0;
  }
}

Kernel OperatorKernels::kernel_of(std::uint32_t op_index, const Work& work, std::uint16_t views,
                                  std::uint16_t modules) {
  Kernel kernel;
  kernel.kernel_class = work.kernel_class;
  kernel.unit = unit_of(work);
  kernel.dtype = work.dtype;
  kernel.stream = l_.plan.launched_on[op_index];
  kernel.launches = work.launches;
  kernel.views = views;
  kernel.modules = modules;
  kernel.compiled = l_.step.attributes_of(l_.step.operators[op_index]).graph > 0;
  kernel.flops = work.flops;
  kernel.read = work.read;
  kernel.written = work.written;
  kernel.elements = work.elements;
  kernel.shape = work.shape;
  kernel.source = op_index;
  describe(op_index, l_.step.operators[op_index], kernel);
  return kernel;
}

void OperatorKernels::launch(std::uint32_t op_index, Kernel kernel, const Allocate& allocate) {
  const Launch launch{op_index, l_.step.operators[op_index], kernel, allocate};
  if (std::holds_alternative<AttentionShape>(kernel.shape)) return attention(launch);
  if (kernel.kernel_class == KernelClass::kGemm) return product(launch);
  if (auto* shape = std::get_if<ConvolutionShape>(&kernel.shape)) {
    shape->channels_last = shape->channels_last || l_.job.channels_last ||
                           (kernel.compiled && compiled_channels_last_);
    return convolution(launch, *shape);
  }
  l_.emit.launch(kernel);
}

void OperatorKernels::attention(const Launch& launch) {
  const Attributes& attributes = l_.step.attributes_of(launch.op);
  auto& shape = std::get<AttentionShape>(launch.kernel.shape);
  shape.backend = l_.job.attention ? *l_.job.attention
                                   : attention_backend(shape, launch.kernel.dtype, attributes);
  const AttentionShape chosen = shape;
  if (!chosen.backward) {
    SavedBuffers saved = attention_forward(launch, chosen);
    if (l_.graph_kept) {
      batch_.hold_with_outputs(saved);
    } else if (l_.plan.attention_backward[launch.op_index] == StepPlan::kNone) {
      for (const BufferId id : saved) l_.emit.free(id);
    } else {
      saved_attention_[launch.op_index] = std::move(saved);
    }
    return;
  }
  attention_backward(launch, chosen);
  const std::uint32_t forward = l_.plan.attention_forward[launch.op_index];
  for (const BufferId id : saved_attention_[forward]) l_.emit.free(id);
  saved_attention_.erase(forward);
}

SavedBuffers OperatorKernels::attention_forward(const Launch& launch, const AttentionShape& shape) {
  if (shape.backend != AttentionBackend::kMath) return fused_attention_forward(launch, shape);
  open_product_library(launch.op.module);
  return emit_math_attention_forward(l_.emit, shape, launch.kernel,
                                     l_.step.attributes_of(launch.op), launch.op.module);
}

void OperatorKernels::attention_backward(const Launch& launch, const AttentionShape& shape) {
  if (shape.backend != AttentionBackend::kMath) return fused_attention_backward(launch, shape);
  open_product_library(launch.op.module);
  emit_math_attention_backward(l_.emit, shape, launch.kernel, l_.step.attributes_of(launch.op),
                               launch.op.module);
}

}  // namespace stoker
