#include "lower/optimizer.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <span>

namespace stoker {
namespace {

// ATen/native/cuda/MultiTensorApply.cuh: tensors per launch by number of tensor lists, blocks per
// launch, elements per block.
constexpr std::array<std::int64_t, 5> kMaxTensors{110, 64, 48, 36, 30};
constexpr std::int64_t kMaxBlocks = 320;
constexpr std::int64_t kChunkElements = 65536;

/// One multi-tensor operation of a foreach optimizer: how many lists it reads and writes.
struct ListPass {
  int reads;
  int writes;
};

/// How one optimizer's step is made.
struct Recipe {
  int state = 0;        ///< copies of the parameters held as state
  int temporaries = 0;  ///< copies held during a foreach step
  std::vector<ListPass>
      passes;      ///< foreach operations in order (torch/optim/*.py, _multi_tensor_*)
  ListPass fused;  ///< lists read and written by the fused kernel
};

void add(Recipe& recipe, std::initializer_list<ListPass> passes) {
  for (const ListPass& pass : passes) recipe.passes.push_back(pass);
}

Recipe recipe_of(const OptimizerSettings& o) {
  const bool decay = o.weight_decay != 0;
  Recipe r;
  switch (o.kind) {
    case OptimizerKind::kSgd:
      r.state = o.momentum != 0 ? 1 : 0;
      r.temporaries = decay ? 1 : 0;
      if (decay) r.passes.push_back({2, 1});          // grad + wd * param, out of place
      if (o.momentum != 0) add(r, {{1, 1}, {2, 1}});  // buf *= mu; buf += grad
      if (o.nesterov) r.passes.push_back({2, 1});
      r.passes.push_back({2, 1});  // param -= lr * update
      r.fused = {2 + r.state, 1 + r.state};
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      r.state = 2;
      r.temporaries = 1;
      if (decay)
        r.passes.push_back(o.kind == OptimizerKind::kAdamW ? ListPass{1, 1} : ListPass{2, 1});
      // lerp; mul; addcmul; sqrt; div; add; addcdiv
      add(r, {{2, 1}, {1, 1}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, {3, 1}});
      r.fused = {4, 3};
      break;
    case OptimizerKind::kRmsprop:
      r.state = o.momentum != 0 ? 2 : 1;
      r.temporaries = 1;
      if (decay) r.passes.push_back({2, 1});
      add(r, {{1, 1}, {2, 1}, {1, 1}, {1, 1}});  // mul; addcmul; sqrt; add
      if (o.momentum != 0) add(r, {{1, 1}, {3, 1}, {2, 1}});
      else r.passes.push_back({3, 1});
      r.fused = {2 + r.state, 1 + r.state};
      break;
    case OptimizerKind::kAdagrad:
      r.state = 1;
      r.temporaries = 2;
      if (decay) r.passes.push_back({2, 1});
      r.passes.insert(
          r.passes.end(),
          {{2, 1}, {1, 1}, {1, 1}, {1, 1}, {3, 1}});  // addcmul; sqrt; add; mul; addcdiv
      r.fused = {3, 2};
      break;
    case OptimizerKind::
        kAdafactor:  // row and column statistics only: sublinear state, left at zero
      r.temporaries = 1;
      r.passes = {{1, 1}, {2, 0}, {2, 0}, {1, 1}, {2, 1}, {2, 1}};
      r.fused = {2, 1};
      break;
    case OptimizerKind::kLion:
      r.state = 1;
      r.temporaries = 1;
      if (decay) r.passes.push_back({1, 1});
      add(r, {{2, 1}, {1, 1}, {2, 1}, {2, 1}});  // lerp; sign; add; lerp
      r.fused = {3, 2};
      break;
    case OptimizerKind::kNone:
      break;
  }
  return r;
}

std::int64_t launches_for(std::int64_t tensors, std::int64_t chunks, int lists) {
  const std::int64_t per_launch =
      kMaxTensors[static_cast<std::size_t>(std::clamp(lists, 1, 5) - 1)];
  return std::max({std::int64_t{1}, (tensors + per_launch - 1) / per_launch,
                   (chunks + kMaxBlocks - 1) / kMaxBlocks});
}

/// The parameters as the kernels see them.
struct Totals {
  std::int64_t bytes = 0, elements = 0, chunks = 0, tensors = 0, largest = 0;
  DType dtype = DType::kF32;
};

Totals totals_of(const std::vector<TrainedParameter>& parameters) {
  Totals t;
  for (const TrainedParameter& p : parameters) {
    const std::int64_t elements = p.bytes.count() / size_of(p.dtype);
    t.bytes += p.bytes.count();
    t.elements += elements;
    t.chunks += (elements + kChunkElements - 1) / kChunkElements;
    t.largest = std::max(t.largest, p.bytes.count());
    ++t.tensors;
    t.dtype = p.dtype;
  }
  return t;
}

void launch_pass(Emitter& emit, const Totals& t, ListPass pass, std::int64_t launches) {
  Kernel kernel;
  kernel.kernel_class = KernelClass::kOptimizer;
  kernel.dtype = t.dtype;
  kernel.read = Bytes(t.bytes * pass.reads);
  kernel.written = Bytes(t.bytes * pass.writes);
  kernel.flops = Flops(static_cast<double>(t.elements) * (pass.reads + pass.writes));
  kernel.elements = t.elements;
  kernel.launches = static_cast<std::uint16_t>(std::min<std::int64_t>(launches, 0xffff));
  emit.launch(kernel);
}

std::vector<BufferId> allocate_copies(Emitter& emit,
                                      const std::vector<TrainedParameter>& parameters, int copies,
                                      BufferRole role, When when) {
  std::vector<BufferId> ids;
  for (int copy = 0; copy < copies; ++copy) {
    for (const TrainedParameter& p : parameters) {
      ids.push_back(emit.buffer({p.bytes, role, Stream::kCompute, false, p.module}));
      emit.allocate(ids.back(), when);
    }
  }
  return ids;
}

void emit_foreach(Emitter& emit, const Recipe& recipe,
                  const std::vector<TrainedParameter>& parameters, const Totals& t) {
  const auto temporaries =
      allocate_copies(emit, parameters, recipe.temporaries, BufferRole::kTemporary, When::kAlways);
  for (const ListPass& pass : recipe.passes) {
    launch_pass(emit, t, pass, launches_for(t.tensors, t.chunks, pass.reads + pass.writes));
  }
  for (const BufferId id : temporaries) emit.free(id);
}

/// One parameter after the other: every pass is a launch of its own, temporaries are of one
/// tensor's size.
void emit_for_loop(Emitter& emit, const Recipe& recipe,
                   const std::vector<TrainedParameter>& parameters) {
  constexpr int kLiveTemporaries =
      3;  // about three of the largest tensor at once (docs/memory-model.md)
  for (const TrainedParameter& p : parameters) {
    const std::vector<TrainedParameter> one{p};
    const int copies = recipe.temporaries > 0 ? kLiveTemporaries : 0;
    const auto temporaries =
        allocate_copies(emit, one, copies, BufferRole::kTemporary, When::kAlways);
    const Totals t = totals_of(one);
    for (const ListPass& pass : recipe.passes) launch_pass(emit, t, pass, 1);
    for (const BufferId id : temporaries) emit.free(id);
  }
}

void step_group(Emitter& emit, const OptimizerSettings& settings,
                const std::vector<TrainedParameter>& parameters) {
  const Recipe recipe = recipe_of(settings);
  const Totals t = totals_of(parameters);
  allocate_copies(emit, parameters, recipe.state, BufferRole::kOptimizerState, When::kFirst);
  switch (settings.loop) {
    case OptimizerLoop::kForeach:
      return emit_foreach(emit, recipe, parameters, t);
    case OptimizerLoop::kForLoop:
      return emit_for_loop(emit, recipe, parameters);
    case OptimizerLoop::kFused:
      return launch_pass(emit, t, recipe.fused,
                         launches_for(t.tensors, t.chunks, recipe.fused.reads + recipe.state));
  }
}

}  // namespace

TrainedParameter trained_parameter(const Step& step, const Sizes& sizes, const Parameter& parameter,
                                   ModuleId module) {
  const std::span<const std::int64_t> shape = sizes.shape(parameter.type);
  TrainedParameter trained{sizes.tensor(step, parameter.type),
                           step.types[index(parameter.type)].dtype, module, parameter.group};
  if (shape.size() > 1) {
    trained.rows = shape[shape.size() - 2];
    trained.columns = shape[shape.size() - 1];
  }
  return trained;
}

std::vector<GroupSettings> optimizer_groups(const Step& step, const OptimizerSettings& settings) {
  std::vector<GroupSettings> groups;
  for (const CapturedOptimizer::Group& group : step.optimizer.groups) {
    const auto it = group.numbers.find("weight_decay");
    groups.push_back({it == group.numbers.end() ? 0 : it->second});
  }
  if (groups.empty()) return {{settings.weight_decay}};
  const auto decays = [](const GroupSettings& g) { return g.weight_decay != 0; };
  const bool any = std::any_of(groups.begin(), groups.end(), decays);
  const double captured = captured_optimizer(step).weight_decay;
  if (settings.weight_decay == captured) return groups;
  for (GroupSettings& group : groups) {
    if (!any || decays(group)) group.weight_decay = settings.weight_decay;
  }
  return groups;
}

void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<GroupSettings>& groups,
                         const std::vector<TrainedParameter>& parameters) {
  emit.enter(StepPhase::kOptimizer);
  if (settings.kind == OptimizerKind::kNone) return;
  std::map<std::int32_t, std::vector<TrainedParameter>> by_group;
  for (const TrainedParameter& p : parameters) by_group[p.group].push_back(p);
  for (const auto& [number, members] : by_group) {
    OptimizerSettings own = settings;
    if (!groups.empty()) {
      const std::size_t last = groups.size() - 1;
      own.weight_decay =
          groups[std::min(static_cast<std::size_t>(std::max(number, 0)), last)].weight_decay;
    }
    step_group(emit, own, members);
  }
}

void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<TrainedParameter>& parameters) {
  emit_optimizer_step(emit, settings, {{settings.weight_decay}}, parameters);
}

}  // namespace stoker
