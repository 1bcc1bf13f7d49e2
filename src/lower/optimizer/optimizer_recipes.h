#pragma once

#include <vector>

#include "lower/common/emitter.h"
#include "lower/optimizer/optimizer.h"

namespace stoker {

using ParameterList = std::vector<TrainedParameter>;

/// One operation over a list of tensors: how many lists it reads and writes.
struct ListPass {
  int reads;
  int writes;
  const char* function = "";  ///< ATen's name of it, for CPUs
};

/// The buffers that one name of the Python code holds: a list of temporaries, one, or none.
using Held = std::vector<BufferId>;

/// What a recipe writes with: temporaries that live as long as the Python name that holds them,
/// state, kernels. A recipe follows the code of torch.optim line by line.
class StepWriter {
 public:
  explicit StepWriter(Emitter& emit) : emit_(emit) {}

  /// One temporary for each parameter, of its size.
  [[nodiscard]] Held like(const ParameterList& list);
  [[nodiscard]] Held like(const TrainedParameter& p) { return {temporary(p, p.bytes)}; }
  [[nodiscard]] Held scratch(const TrainedParameter& p, Bytes bytes) {
    return {temporary(p, bytes)};
  }
  /// `name = fresh`: the new tensors are there before the old ones go.
  void assign(Held& name, Held fresh);
  /// `del name`, or its reuse for tensors that live on anyway.
  void release(Held& name);

  /// State that the first step makes.
  void state(const TrainedParameter& p, Bytes bytes);
  /// `count` tensors of its size for each parameter, made before the step looks at any.
  void states(const ParameterList& group, int count);
  /// State that the optimizer's constructor makes.
  void constructed(const TrainedParameter& p, Bytes bytes);

  /// A multi-tensor kernel over the list.
  void run(const ParameterList& list, ListPass pass);
  /// A kernel over one tensor.
  void run(const TrainedParameter& p, ListPass pass);
  /// A kernel over one tensor that moves so many bytes.
  void run(const TrainedParameter& p, Bytes read, Bytes written);
  /// A kernel over `elements` numbers beside a parameter.
  void run_small(const TrainedParameter& p, std::int64_t elements);
  /// `.item()`: the host waits for the device.
  void read_number() { emit_.synchronize(); }

 private:
  BufferId temporary(const TrainedParameter& p, Bytes bytes);

  Emitter& emit_;
};

/// The lists that PyTorch makes of a group's tensors before a foreach operation, one a dtype. They
/// come in the order of a std::unordered_map of libstdc++: the dtype met last is the first.
[[nodiscard]] std::vector<ParameterList> by_dtype(const ParameterList& group);

[[nodiscard]] std::int64_t elements_of(const TrainedParameter& p);

/// Tensors of a parameter's size that an optimizer keeps for it. Adafactor keeps
/// smaller ones, LBFGS vectors of all parameters.
[[nodiscard]] int state_tensors(const OptimizerSettings& o);

/// Elements that one block of a multi-tensor kernel takes (ATen/native/cuda/MultiTensorApply.cuh).
inline constexpr std::int64_t kChunkElements = 65536;

/// One group's step. `o.weight_decay` is the group's.
void step_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
void step_for_loop(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
void step_fused(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
/// bitsandbytes' 8-bit optimizers.
void step_quantised(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
void adafactor_foreach(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
void adafactor_for_loop(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);
/// It has one loop, over vectors of all parameters.
void step_lbfgs(StepWriter& step, const OptimizerSettings& o, const ParameterList& group);

}  // namespace stoker
