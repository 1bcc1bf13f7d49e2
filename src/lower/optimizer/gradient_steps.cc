#include "lower/optimizer/gradient_steps.h"

#include <algorithm>
#include <iterator>

#include "lower/optimizer/optimizer_recipes.h"

namespace stoker {
namespace {

constexpr Bytes kScalar{4};        ///< float32 or int32, one element
constexpr Bytes kDoubleScalar{8};  ///< float64 or int64, one element
constexpr std::int64_t kFloatBytes = 4;

Bytes one_of(const TrainedParameter& p) { return Bytes(size_of(p.dtype)); }

/// A kernel on one number, or on one per tensor.
void launch_small(Emitter& emit, std::int64_t elements = 1) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kElementwise;
  kernel.elements = elements;
  kernel.read = kernel.written = Bytes(elements * kFloatBytes);
  kernel.flops = Flops(static_cast<double>(elements));
  emit.launch(kernel);
}

BufferId temporary(Emitter& emit, Bytes bytes, When when = When::kAlways,
                   BufferRole role = BufferRole::kTemporary) {
  const BufferId id = emit.buffer({bytes, role, Stream::kCompute, false, ModuleId{}});
  emit.allocate(id, when);
  return id;
}

/// The norms of the tensors of one dtype; the partial sums of their chunks die with the call
/// (ATen/native/cuda/ForeachReduceOp.cu: one number per tensor and chunk of the largest).
std::vector<BufferId> norms_of(Emitter& emit, const ParameterList& list) {
  std::int64_t most_chunks = 0;
  for (const TrainedParameter& p : list) {
    most_chunks = std::max(most_chunks, (elements_of(p) + kChunkElements - 1) / kChunkElements);
  }
  const auto tensors = static_cast<std::int64_t>(list.size());
  const BufferId partial = temporary(emit, Bytes(tensors * most_chunks * kFloatBytes));
  launch_small(emit, tensors * most_chunks);  // filled with zeros
  std::vector<BufferId> norms;
  for (const TrainedParameter& p : list) norms.push_back(temporary(emit, one_of(p)));
  StepWriter(emit).run(list, {1, 0});
  launch_small(emit, tensors);
  emit.free(partial);
  return norms;
}

/// torch.linalg.vector_norm of each tensor.
std::vector<BufferId> norms_one_by_one(Emitter& emit, const ParameterList& list) {
  std::vector<BufferId> norms;
  for (const TrainedParameter& p : list) {
    norms.push_back(temporary(emit, one_of(p)));
    StepWriter(emit).run(p, {1, 0});
  }
  return norms;
}

void scale_list(Emitter& emit, const ParameterList& list, OptimizerLoop loop) {
  StepWriter writer(emit);
  if (loop != OptimizerLoop::kForLoop) return writer.run(list, {1, 1});
  for (const TrainedParameter& p : list) writer.run(p, {1, 1});
}

}  // namespace

BufferId emit_scale_loss(Emitter& emit) {
  temporary(emit, kScalar, When::kFirst, BufferRole::kOptimizerState);  // the scale
  temporary(emit, kScalar, When::kFirst, BufferRole::kOptimizerState);  // its growth counter
  const BufferId scaled = temporary(emit, kScalar);
  launch_small(emit);
  return scaled;
}

BufferId emit_unscale(Emitter& emit, const ParameterList& parameters) {
  ParameterList updated;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(updated),
               [](const TrainedParameter& p) { return p.group >= 0; });
  emit.enter(StepPhase::kOptimizer);
  const BufferId as_double = temporary(emit, kDoubleScalar);
  launch_small(emit);
  const BufferId reciprocal = temporary(emit, kDoubleScalar);
  launch_small(emit);
  emit.free(as_double);
  const BufferId inverse = temporary(emit, kScalar);
  launch_small(emit);
  emit.free(reciprocal);
  const BufferId found_here = temporary(emit, kScalar);
  launch_small(emit);
  const BufferId found_inf = temporary(emit, kScalar);  // one copy a device
  launch_small(emit);
  const BufferId inverse_copy = temporary(emit, kScalar);
  launch_small(emit);
  for (const ParameterList& list : by_dtype(updated)) StepWriter(emit).run(list, {1, 1});
  emit.free(inverse_copy);
  emit.free(found_here);
  emit.free(inverse);
  return found_inf;
}

void emit_overflow_check(Emitter& emit, OptimizerLoop loop) {
  if (loop != OptimizerLoop::kFused) emit.synchronize();
}

void emit_clip(Emitter& emit, const ParameterList& parameters, bool checks, OptimizerLoop loop) {
  emit.enter(StepPhase::kOptimizer);
  if (parameters.empty()) return;
  const std::vector<ParameterList> lists = by_dtype(parameters);
  std::vector<BufferId> norms;
  Bytes number;  // norms of several dtypes are stacked in the widest
  for (const ParameterList& list : lists) {
    const std::vector<BufferId> more =
        loop == OptimizerLoop::kForLoop ? norms_one_by_one(emit, list) : norms_of(emit, list);
    norms.insert(norms.end(), more.begin(), more.end());
    number = std::max(number, one_of(list.front()));
  }
  const auto tensors = static_cast<std::int64_t>(parameters.size());
  const BufferId stacked = temporary(emit, number * tensors);
  launch_small(emit, tensors);
  const BufferId total = temporary(emit, number);
  launch_small(emit, tensors);
  emit.free(stacked);
  for (const BufferId norm : norms) emit.free(norm);
  if (checks) {  // `if logical_or(norm.isnan(), norm.isinf())`
    for (int i = 0; i < 3; ++i) {
      const BufferId truth = temporary(emit, Bytes(1));
      launch_small(emit);
      emit.free(truth);
    }
    emit.synchronize();
  }
  const BufferId shifted = temporary(emit, number);  // total + 1e-6
  launch_small(emit);
  const BufferId inverse = temporary(emit, number);
  launch_small(emit);
  const BufferId coefficient = temporary(emit, number);
  launch_small(emit);
  emit.free(inverse);
  emit.free(shifted);
  const BufferId clamped = temporary(emit, number);
  launch_small(emit);
  for (const ParameterList& list : lists) scale_list(emit, list, loop);
  emit.free(clamped);
  emit.free(coefficient);
  emit.free(total);
}

void emit_scale_update(Emitter& emit, BufferId found_inf) {
  launch_small(emit);
  emit.free(found_inf);
}

void emit_ema(Emitter& emit, const ParameterList& parameters_and_buffers) {
  emit.enter(StepPhase::kOptimizer);
  if (parameters_and_buffers.empty()) return;
  for (const TrainedParameter& p : parameters_and_buffers) {
    emit.keep({p.bytes, BufferRole::kModelBuffer, Stream::kCompute, false, p.module});
  }
  const BufferId count = temporary(emit, kDoubleScalar);  // how many steps were averaged
  for (const ParameterList& list : by_dtype(parameters_and_buffers)) {
    StepWriter(emit).run(list, {2, 1});  // lerp_
  }
  emit.free(count);
}

}  // namespace stoker
