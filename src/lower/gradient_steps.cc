#include "lower/gradient_steps.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stoker {
namespace {

constexpr Bytes kScalar{4};        ///< float32 or int32, one element
constexpr Bytes kDoubleScalar{8};  ///< float64 or int64, one element
constexpr std::int64_t kFloatBytes = 4;
/// ATen/native/cuda/MultiTensorApply.cuh: elements per block of a multi-tensor kernel.
constexpr std::int64_t kChunkElements = 65536;
/// Tensors that one launch takes, by number of lists (MultiTensorApply.cuh, depth_to_max_tensors).
constexpr std::int64_t kTensorsOfOneList = 110, kTensorsOfTwoLists = 64;
constexpr std::int64_t kMaxBlocks = 320;

using Parameters = std::vector<TrainedParameter>;

std::int64_t elements_of(const TrainedParameter& p) { return p.bytes.count() / size_of(p.dtype); }

std::int64_t chunks_of(const TrainedParameter& p) {
  return (elements_of(p) + kChunkElements - 1) / kChunkElements;
}

/// By dtype, as PyTorch groups a list before a foreach operation.
std::map<DType, Parameters> by_dtype(const Parameters& parameters) {
  std::map<DType, Parameters> groups;
  for (const TrainedParameter& p : parameters) groups[p.dtype].push_back(p);
  return groups;
}

/// A multi-tensor kernel over a list: `reads` and `writes` are lists moved.
void launch_list(Emitter& emit, const Parameters& list, int reads, int writes) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kOptimizer;
  kernel.dtype = list.front().dtype;
  std::int64_t bytes = 0, chunks = 0;
  for (const TrainedParameter& p : list) {
    bytes += p.bytes.count();
    chunks += chunks_of(p);
    kernel.elements += elements_of(p);
  }
  kernel.read = Bytes(bytes * reads);
  kernel.written = Bytes(bytes * writes);
  kernel.flops = Flops(static_cast<double>(kernel.elements) * (reads + writes));
  const std::int64_t per_launch = reads > 1 ? kTensorsOfTwoLists : kTensorsOfOneList;
  const auto tensors = static_cast<std::int64_t>(list.size());
  const std::int64_t launches =
      std::max((tensors + per_launch - 1) / per_launch, (chunks + kMaxBlocks - 1) / kMaxBlocks);
  kernel.launches = static_cast<std::uint16_t>(std::clamp<std::int64_t>(launches, 1, 0xffff));
  emit.launch(kernel);
}

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
std::vector<BufferId> norms_of(Emitter& emit, const Parameters& list) {
  std::int64_t most_chunks = 0;
  for (const TrainedParameter& p : list) most_chunks = std::max(most_chunks, chunks_of(p));
  const auto tensors = static_cast<std::int64_t>(list.size());
  const BufferId partial = temporary(emit, Bytes(tensors * most_chunks * kFloatBytes));
  launch_small(emit, tensors * most_chunks);  // filled with zeros
  std::vector<BufferId> norms;
  for (const TrainedParameter& p : list) {
    norms.push_back(temporary(emit, Bytes(size_of(p.dtype))));
  }
  launch_list(emit, list, 1, 0);
  launch_small(emit, tensors);
  emit.free(partial);
  return norms;
}

}  // namespace

BufferId emit_scale_loss(Emitter& emit) {
  temporary(emit, kScalar, When::kFirst, BufferRole::kOptimizerState);  // the scale
  temporary(emit, kScalar, When::kFirst, BufferRole::kOptimizerState);  // its growth counter
  const BufferId scaled = temporary(emit, kScalar);
  launch_small(emit);
  return scaled;
}

BufferId emit_unscale(Emitter& emit, const Parameters& parameters) {
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
  for (const auto& [dtype, list] : by_dtype(parameters)) launch_list(emit, list, 1, 1);
  emit.free(inverse_copy);
  emit.free(found_here);
  emit.free(inverse);
  return found_inf;
}

void emit_overflow_check(Emitter& emit, OptimizerLoop loop) {
  if (loop != OptimizerLoop::kFused) emit.synchronize();
}

void emit_clip(Emitter& emit, const Parameters& parameters) {
  emit.enter(StepPhase::kOptimizer);
  if (parameters.empty()) return;
  const auto groups = by_dtype(parameters);
  std::vector<BufferId> norms;
  for (const auto& [dtype, list] : groups) {
    const std::vector<BufferId> more = norms_of(emit, list);
    norms.insert(norms.end(), more.begin(), more.end());
  }
  const auto tensors = static_cast<std::int64_t>(parameters.size());
  const BufferId stacked = temporary(emit, Bytes(tensors * kFloatBytes));
  launch_small(emit, tensors);
  const BufferId total = temporary(emit, kScalar);
  launch_small(emit, tensors);
  emit.free(stacked);
  for (const BufferId norm : norms) emit.free(norm);
  const BufferId shifted = temporary(emit, kScalar);  // norm + 1e-6
  launch_small(emit);
  const BufferId coefficient = temporary(emit, kScalar);
  launch_small(emit);
  emit.free(shifted);
  const BufferId clamped = temporary(emit, kScalar);
  launch_small(emit);
  for (const auto& [dtype, list] : groups) launch_list(emit, list, 1, 1);
  emit.free(clamped);
  emit.free(coefficient);
  emit.free(total);
}

void emit_scale_update(Emitter& emit, BufferId found_inf) {
  launch_small(emit);
  emit.free(found_inf);
}

void emit_ema(Emitter& emit, const Parameters& parameters_and_buffers) {
  emit.enter(StepPhase::kOptimizer);
  for (const TrainedParameter& p : parameters_and_buffers) {
    emit.keep({p.bytes, BufferRole::kModelBuffer, Stream::kCompute, false, p.module});
  }
  for (const auto& [dtype, list] : by_dtype(parameters_and_buffers)) {
    launch_list(emit, list, 2, 1);
  }
}

}  // namespace stoker
