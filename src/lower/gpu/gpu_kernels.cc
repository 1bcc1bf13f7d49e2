#include "lower/gpu/gpu_kernels.h"

#include <vector>

#include "lower/common/math_units.h"
#include "lower/gpu/attention.h"
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

/// A linear layer with a bias: one call of cuBLASLt (ATen/native/cuda/Blas.cpp, addmm with a bias
/// of one dimension).
bool adds_bias(const Step& step, const Operator& op) {
  return step.operator_name(op) == "aten::addmm" && !op.inputs.empty() &&
         step.types[index(op.inputs[0].type)].shape.size() == 1;
}

}  // namespace

MathUnit GpuKernels::unit_of(const Work& work) const { return unit_for(work, l_.job, gpu_); }

/// The forward thread and the autograd thread have a handle each, with a workspace each that is
/// kept.
void GpuKernels::keep_workspace(Handles& handles, Bytes bytes, ModuleId module) {
  bool& made = l_.emit.phase() == StepPhase::kBackward ? handles.backward : handles.forward;
  if (made || !l_.job.cublas_workspaces_in_allocator) return;
  made = true;
  l_.emit.allocate(l_.emit.buffer({bytes, BufferRole::kWorkspace, Stream::kCompute, false, module}),
                   When::kFirst);
}

void GpuKernels::open_product_library(ModuleId module) {
  keep_workspace(libraries_.cublas, cublas_workspace(gpu_, l_.job), module);
}

/// A workspace that lives for one call.
void GpuKernels::launch_with_workspace(const Kernel& kernel, Buffer workspace) {
  const BufferId id = l_.emit.buffer(workspace);
  l_.emit.allocate(id);
  l_.emit.launch(kernel);
  l_.emit.free(id);
}

void GpuKernels::product(const Launch& launch) {
  open_product_library(launch.op.module);
  if (adds_bias(l_.step, launch.op)) {
    if (const auto workspace = cublaslt_workspace(gpu_, l_.job))
      keep_workspace(libraries_.cublaslt, *workspace, launch.op.module);
  }
  l_.emit.launch(launch.kernel);
}

void GpuKernels::convolution(const Launch& launch, const ConvolutionShape& shape) {
  const Operator& op = launch.op;
  const std::size_t first =
      shape.pass == Pass::kForward ? 0 : 1;  // backward: gradient, input, weight
  const Bytes input = l_.sizes.touched(op.inputs[first]);
  const Bytes weight = l_.sizes.touched(op.inputs[first + 1]);
  const Bytes output = l_.sizes.touched(first == 0 ? op.outputs[0] : op.inputs[0]);
  const auto workspace = convolution_workspace(shape, input, output, weight, l_.job.cudnn);
  if (workspace) {
    launch_with_workspace(launch.kernel,
                          {*workspace, BufferRole::kWorkspace, Stream::kCompute, true, op.module});
  } else {
    l_.emit.launch(launch.kernel);
  }
  // After trying the algorithms of a convolution that is new to it, PyTorch empties the
  // allocator's cache (ATen/native/cudnn/Conv_v8.cpp, run_single_conv).
  if (l_.job.cudnn == CudnnProfile::kBenchmark && libraries_.tried.insert(key_of(shape)).second)
    l_.emit.empty_cache(When::kFirst);
}

AttentionBackend GpuKernels::attention_backend(const AttentionShape& shape, DType dtype,
                                               const Attributes& attributes) const {
  return choose_attention(shape, dtype, attributes, gpu_);
}

SavedBuffers GpuKernels::fused_attention_forward(const Launch& launch,
                                                 const AttentionShape& shape) {
  return emit_fused_attention_forward(l_.emit, shape, launch.kernel,
                                      l_.step.attributes_of(launch.op), launch.op.module);
}

void GpuKernels::fused_attention_backward(const Launch& launch, const AttentionShape& shape) {
  emit_fused_attention_backward(l_.emit, shape, launch.kernel, launch.op.module);
}

}  // namespace stoker
