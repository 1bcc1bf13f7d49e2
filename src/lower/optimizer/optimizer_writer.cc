#include <algorithm>
#include <array>
#include <utility>

#include "lower/optimizer/optimizer_recipes.h"

namespace stoker {
namespace {

// ATen/native/cuda/MultiTensorApply.cuh: tensors per launch by number of tensor lists, blocks per
// launch.
constexpr std::array<std::int64_t, 5> kMaxTensors{110, 64, 48, 36, 30};
constexpr std::int64_t kMaxBlocks = 320;

std::uint16_t launches_for(std::int64_t tensors, std::int64_t chunks, int lists) {
  const std::int64_t per_launch =
      kMaxTensors[static_cast<std::size_t>(std::clamp(lists, 1, 5) - 1)];
  const std::int64_t launches = std::max({std::int64_t{1}, (tensors + per_launch - 1) / per_launch,
                                          (chunks + kMaxBlocks - 1) / kMaxBlocks});
  return static_cast<std::uint16_t>(std::min<std::int64_t>(launches, 0xffff));
}

Kernel optimizer_kernel(DType dtype, std::int64_t elements, std::int64_t bytes, ListPass pass) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kOptimizer;
  kernel.dtype = dtype;
  kernel.read = Bytes(bytes * pass.reads);
  kernel.written = Bytes(bytes * pass.writes);
  kernel.flops = Flops(static_cast<double>(elements) * (pass.reads + pass.writes));
  kernel.elements = elements;
  return kernel;
}

}  // namespace

std::int64_t elements_of(const TrainedParameter& p) { return p.bytes.count() / size_of(p.dtype); }

int state_tensors(const OptimizerSettings& o) {
  switch (o.kind) {
    case OptimizerKind::kSgd:
      return o.momentum != 0 ? 1 : 0;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return o.amsgrad ? 3 : 2;
    case OptimizerKind::kRmsprop:
      return 1 + (o.momentum != 0 ? 1 : 0) + (o.centered ? 1 : 0);
    case OptimizerKind::kAdadelta:
    case OptimizerKind::kAdamax:
    case OptimizerKind::kNAdam:
    case OptimizerKind::kRAdam:
      return 2;
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kLion:
      return 1;
    case OptimizerKind::kAdafactor:
    case OptimizerKind::kLbfgs:
    case OptimizerKind::kNone:
      break;
  }
  return 0;
}

std::vector<ParameterList> by_dtype(const ParameterList& group) {
  std::vector<ParameterList> lists;
  for (const TrainedParameter& p : group) {
    const auto it = std::find_if(lists.begin(), lists.end(), [&](const ParameterList& list) {
      return list.front().dtype == p.dtype;
    });
    if (it == lists.end()) lists.insert(lists.begin(), ParameterList{p});
    else it->push_back(p);
  }
  return lists;
}

BufferId StepWriter::temporary(const TrainedParameter& p, Bytes bytes) {
  const BufferId id =
      emit_.buffer({bytes, BufferRole::kTemporary, Stream::kCompute, false, p.module});
  emit_.allocate(id);
  return id;
}

Held StepWriter::like(const ParameterList& list) {
  Held ids;
  for (const TrainedParameter& p : list) ids.push_back(temporary(p, p.bytes));
  return ids;
}

void StepWriter::assign(Held& name, Held fresh) {
  release(name);
  name = std::move(fresh);
}

void StepWriter::release(Held& name) {
  for (const BufferId id : name) emit_.free(id);
  name.clear();
}

void StepWriter::state(const TrainedParameter& p, Bytes bytes) {
  emit_.allocate(
      emit_.buffer({bytes, BufferRole::kOptimizerState, Stream::kCompute, false, p.module}),
      When::kFirst);
}

void StepWriter::states(const ParameterList& group, int count) {
  for (const TrainedParameter& p : group) {
    for (int copy = 0; copy < count; ++copy) state(p, p.bytes);
  }
}

void StepWriter::constructed(const TrainedParameter& p, Bytes bytes) {
  emit_.keep({bytes, BufferRole::kOptimizerState, Stream::kCompute, false, p.module});
}

void StepWriter::run(const ParameterList& list, ListPass pass) {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::int64_t chunks = 0;
  for (const TrainedParameter& p : list) {
    bytes += p.bytes.count();
    elements += elements_of(p);
    chunks += (elements_of(p) + kChunkElements - 1) / kChunkElements;
  }
  Kernel kernel = optimizer_kernel(list.front().dtype, elements, bytes, pass);
  kernel.launches =
      launches_for(static_cast<std::int64_t>(list.size()), chunks, pass.reads + pass.writes);
  kernel.listed = static_cast<std::uint32_t>(list.size() * static_cast<std::size_t>(pass.reads));
  emit_.launch(kernel);
}

void StepWriter::run(const TrainedParameter& p, ListPass pass) {
  Kernel kernel = optimizer_kernel(p.dtype, elements_of(p), p.bytes.count(), pass);
  kernel.function = emit_.function(pass.function);
  emit_.launch(kernel);
}

void StepWriter::run(const TrainedParameter& p, Bytes read, Bytes written) {
  Kernel kernel = optimizer_kernel(p.dtype, elements_of(p), 0, {1, 1});
  kernel.read = read;
  kernel.written = written;
  emit_.launch(kernel);
}

void StepWriter::run_small(const TrainedParameter& p, std::int64_t elements) {
  emit_.launch(optimizer_kernel(p.dtype, elements, elements * size_of(p.dtype), {1, 1}));
}

}  // namespace stoker
