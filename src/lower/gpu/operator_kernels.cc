#include "lower/gpu/operator_kernels.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "lower/cpu/cpu_attention.h"
#include "lower/cpu/cpu_convolution.h"
#include "lower/cpu/cpu_work.h"
#include "lower/gpu/units.h"
#include "lower/gpu/workspace.h"

namespace stoker {
namespace {

/// What makes two convolutions of one run the same to cuDNN.
std::vector<std::int64_t> key_of(const ConvolutionShape& c) {
  std::vector<std::int64_t> key{static_cast<std::int64_t>(c.pass), c.batch, c.in_channels,
                                c.out_channels, c.groups};
  for (const auto* sizes : {&c.in, &c.out, &c.kernel, &c.stride, &c.dilation}) {
    key.insert(key.end(), sizes->begin(), sizes->end());
  }
  return key;
}

bool is_convolution(KernelClass kernel_class) {
  return kernel_class == KernelClass::kConvolution ||
         kernel_class == KernelClass::kDepthwiseConvolution;
}

/// A linear layer with a bias: one call of cuBLASLt (ATen/native/cuda/Blas.cpp, addmm with a bias of
/// one dimension).
bool adds_bias(const Step& step, const Operator& op) {
  return step.operator_name(op) == "aten::addmm" && !op.inputs.empty() &&
         step.types[index(op.inputs[0].type)].shape.size() == 1;
}

/// Gradients that meet (no node: link 0) are added where the first lies, unless that is part of another tensor
/// (torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace). A capture sees the sum out of place, since
/// its tensors are a subclass.
bool adds_in_place(const Step& step, const Sizes& sizes, const Operator& op) {
  if (op.link != 0 || op.inputs.empty() || step.operator_name(op) != "aten::add.Tensor")
    return false;
  const TensorRef& first = op.inputs[0];
  return sizes.tensor(step, first.type) == sizes.storage(first.storage);
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

bool OperatorKernels::allocates(std::uint32_t op_index) const {
  return l_.cpu() && is_convolution(l_.step.family_of(l_.step.operators[op_index]).kernel_class);
}

void OperatorKernels::run(std::uint32_t op_index, const Allocate& allocate) {
  const Operator& op = l_.step.operators[op_index];
  const Call call{op_index, op, allocate};
  work_.clear();
  append_work(l_.step, op, l_.sizes, work_);
  if (l_.cpu()) join_for_cpu(l_.step, op, l_.sizes, work_);
  auto views = static_cast<std::uint16_t>(std::min(l_.step.attributes_of(op).views, 0xffff));
  for (const Work& work : work_) {
    if (work.kernel_class == KernelClass::kUncosted && !l_.extra) {
      l_.emit.program().diagnostics.add(
          "uncosted_operator", Severity::kWarning,
          std::string(l_.step.operator_name(op)) + " has no cost rule; costed by its bytes");
    }
    launch(call, work, views);
    views = 0;
  }
}

Kernel OperatorKernels::kernel_of(std::uint32_t op_index, const Work& work, std::uint16_t views) {
  Kernel kernel;
  kernel.kernel_class = work.kernel_class;
  kernel.unit = unit_for(work, l_.job, l_.machine.gpu);
  kernel.dtype = work.dtype;
  kernel.stream = l_.plan.launched_on[op_index];
  kernel.launches = work.launches;
  kernel.views = views;
  kernel.flops = work.flops;
  kernel.read = work.read;
  kernel.written = work.written;
  kernel.elements = work.elements;
  kernel.shape = work.shape;
  kernel.source = op_index;
  if (l_.machine.gpu.is_cpu()) {
    const Operator& op = l_.step.operators[op_index];
    const bool backward = l_.emit.phase() == StepPhase::kBackward;
    std::string_view function = l_.step.name_of(op).function();
    if (backward && adds_in_place(l_.step, l_.sizes, op)) function = "add_";
    kernel.function = l_.emit.function(function);
    kernel.strided = crosses_rows(l_.step, op, l_.sizes);
    kernel.chained = chain_.follows(backward, op_index, op);
  }
  return kernel;
}

void OperatorKernels::launch(const Call& call, const Work& work, std::uint16_t views) {
  Kernel kernel = kernel_of(call.index, work, views);
  if (std::holds_alternative<AttentionShape>(work.shape))
    return attention(call.index, call.op, kernel);
  if (work.kernel_class == KernelClass::kGemm) return product(call.op, kernel);
  if (auto* shape = std::get_if<ConvolutionShape>(&kernel.shape)) {
    shape->channels_last = shape->channels_last || l_.job.channels_last;
    return convolution(call, kernel, *shape);
  }
  l_.emit.launch(kernel);
}

/// The forward thread and the autograd thread have a handle each, with a workspace each that is kept.
void OperatorKernels::keep_workspace(Handles& handles, Bytes bytes, ModuleId module) {
  bool& made = l_.emit.phase() == StepPhase::kBackward ? handles.backward : handles.forward;
  if (made || !l_.job.cublas_workspaces_in_allocator) return;
  made = true;
  l_.emit.allocate(l_.emit.buffer({bytes, BufferRole::kWorkspace, Stream::kCompute, false, module}),
                   When::kFirst);
}

void OperatorKernels::cublas_handle(ModuleId module) {
  keep_workspace(libraries_.cublas, cublas_workspace(l_.machine.gpu, l_.job), module);
}

/// A workspace that lives for one call.
void OperatorKernels::launch_with_workspace(const Kernel& kernel, Buffer workspace) {
  const BufferId id = l_.emit.buffer(workspace);
  l_.emit.allocate(id);
  l_.emit.launch(kernel);
  l_.emit.free(id);
}

void OperatorKernels::product(const Operator& op, const Kernel& kernel) {
  cublas_handle(op.module);
  if (adds_bias(l_.step, op)) {
    if (const auto workspace = cublaslt_workspace(l_.machine.gpu, l_.job))
      keep_workspace(libraries_.cublaslt, *workspace, op.module);
  }
  l_.emit.launch(kernel);
}

void OperatorKernels::convolution(const Call& call, const Kernel& kernel,
                                  const ConvolutionShape& shape) {
  if (l_.cpu()) return cpu_convolution(call, kernel, shape);
  const Operator& op = call.op;
  const std::size_t first =
      shape.pass == Pass::kForward ? 0 : 1;  // backward: gradient, input, weight
  const Bytes input = l_.sizes.touched(l_.step, op.inputs[first]);
  const Bytes weight = l_.sizes.touched(l_.step, op.inputs[first + 1]);
  const Bytes output = l_.sizes.touched(l_.step, first == 0 ? op.outputs[0] : op.inputs[0]);
  const auto workspace = convolution_workspace(shape, input, output, weight, l_.job.cudnn);
  if (workspace) {
    launch_with_workspace(kernel,
                          {*workspace, BufferRole::kWorkspace, Stream::kCompute, true, op.module});
  } else {
    l_.emit.launch(kernel);
  }
  // After trying the algorithms of a convolution that is new to it, PyTorch empties the
  // allocator's cache (ATen/native/cudnn/Conv_v8.cpp, run_single_conv).
  if (l_.job.cudnn == CudnnProfile::kBenchmark && libraries_.tried.insert(key_of(shape)).second)
    l_.emit.empty_cache(When::kFirst);
}

void OperatorKernels::cpu_convolution(const Call& call, const Kernel& kernel,
                                      const ConvolutionShape& shape) {
  const Operator& op = call.op;
  // Outputs of the backward are those that are wanted, in the order input, weight, bias.
  const auto& wanted = l_.step.attributes_of(op).gradients;
  const bool first = shape.pass != Pass::kBackwardWeight || (!wanted.empty() && !wanted[0]);
  const std::size_t output = first ? 0 : 1;
  const auto allocate = [&] {
    if (output < op.outputs.size())
      call.allocate(static_cast<std::uint32_t>(index(op.outputs[output].storage)));
  };
  emit_cpu_convolution(l_.emit, {shape, kernel.dtype, l_.threads(), op.module}, kernel, allocate);
}

SavedBuffers OperatorKernels::attention_forward(const AttentionShape& shape, const Kernel& kernel,
                                                const Attributes& attributes, ModuleId module) {
  return l_.cpu() && shape.backend != AttentionBackend::kMath
             ? emit_cpu_attention_forward(l_.emit, shape, kernel, l_.threads(), module)
             : emit_attention_forward(l_.emit, shape, kernel, attributes, module);
}

void OperatorKernels::attention_backward(const AttentionShape& shape, const Kernel& kernel,
                                         const Attributes& attributes, ModuleId module) {
  if (l_.cpu() && shape.backend != AttentionBackend::kMath)
    emit_cpu_attention_backward(l_.emit, shape, kernel, l_.threads(), module);
  else emit_attention_backward(l_.emit, shape, kernel, attributes, module);
}

void OperatorKernels::attention(std::uint32_t op_index, const Operator& op, Kernel& kernel) {
  const Attributes& attributes = l_.step.attributes_of(op);
  auto& shape = std::get<AttentionShape>(kernel.shape);
  shape.backend = choose_attention(shape, kernel.dtype, attributes, l_.job, l_.machine.gpu);
  const AttentionShape chosen = shape;
  if (chosen.backend == AttentionBackend::kMath) cublas_handle(op.module);
  if (!chosen.backward) {
    SavedBuffers saved = attention_forward(chosen, kernel, attributes, op.module);
    if (l_.graph_kept) {
      batch_.hold_with_outputs(saved);
    } else if (l_.plan.attention_backward[op_index] == StepPlan::kNone) {
      for (const BufferId id : saved) l_.emit.free(id);
    } else {
      saved_attention_[op_index] = std::move(saved);
    }
    return;
  }
  attention_backward(chosen, kernel, attributes, op.module);
  const std::uint32_t forward = l_.plan.attention_forward[op_index];
  for (const BufferId id : saved_attention_[forward]) l_.emit.free(id);
  saved_attention_.erase(forward);
}

}  // namespace stoker
