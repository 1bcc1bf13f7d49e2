#include "lower/common/step_plan.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "work/work.h"

namespace stoker {
namespace {

BufferRole role_of(StorageKind kind) {
  switch (kind) {
    case StorageKind::kParameter:
      return BufferRole::kParameter;
    case StorageKind::kBuffer:
      return BufferRole::kModelBuffer;
    case StorageKind::kInput:
      return BufferRole::kInput;
    case StorageKind::kGradient:
      return BufferRole::kGradient;
    case StorageKind::kOutput:
      return BufferRole::kOutput;
    case StorageKind::kPersistent:
      return BufferRole::kModelBuffer;
    case StorageKind::kTransient:
      return BufferRole::kTemporary;
  }
  return BufferRole::kTemporary;
}

void list_gradients(const Step& step, StepPlan& plan) {
  plan.gradient_of.assign(step.storages.size(), StepPlan::kNone);
  std::vector<std::vector<std::uint32_t>> parameters(step.storages.size());
  for (std::uint32_t i = 0; i < step.parameters.size(); ++i) {
    const std::int64_t gradient = step.parameters[i].gradient;
    if (gradient >= 0) parameters[static_cast<std::size_t>(gradient)].push_back(i);
  }
  for (std::uint32_t s = 0; s < parameters.size(); ++s) {
    if (parameters[s].empty()) continue;
    plan.gradient_of[s] = static_cast<std::uint32_t>(plan.gradients.size());
    plan.gradients.push_back({s, std::move(parameters[s])});
  }
}

/// Transient storages that are alive when the backward begins are activations.
void mark_activations(const Step& step, StepPlan& plan) {
  std::vector<bool> alive(step.storages.size());
  for (const Event& event : step.events) {
    if (event.kind == EventKind::kAllocate) alive[event.value] = true;
    if (event.kind == EventKind::kFree) alive[event.value] = false;
    if (event.kind == EventKind::kPhase && Phase(event.value) == Phase::kBackward) break;
  }
  for (std::size_t s = 0; s < alive.size(); ++s) {
    if (alive[s] && step.storages[s].kind == StorageKind::kTransient)
      plan.roles[s] = BufferRole::kActivation;
  }
}

void assign_modules(const Step& step, StepPlan& plan) {
  std::vector<std::uint32_t> waiting;
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind == EventKind::kAllocate) waiting.push_back(event.value);
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    for (const std::uint32_t s : waiting) plan.modules[s] = op.module;
    waiting.clear();
    for (const TensorRef& out : op.outputs)
      plan.last_write[index(out.storage)] = static_cast<std::uint32_t>(e);
  }
}

/// Parts of a module's path that another's does not share from the front: "layer1.0.conv2" after
/// "layer1.0.conv1" is one, "layer2.0.conv1" three.
std::uint16_t parts_beyond(std::string_view path, std::string_view before) {
  std::size_t shared = 0;  // whole parts, with the point behind each
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (i >= before.size() || path[i] != before[i]) break;
    if (path[i] == '.') shared = i + 1;
    if (i + 1 == path.size() && (before.size() == path.size() || before[i + 1] == '.'))
      shared = path.size();
  }
  const std::string_view rest = path.substr(shared);
  if (rest.empty()) return 0;
  return static_cast<std::uint16_t>(1 + std::count(rest.begin(), rest.end(), '.'));
}

void count_calls(const Step& step, StepPlan& plan) {
  plan.calls.reserve(step.operators.size());
  std::string_view before;
  for (const Operator& op : step.operators) {
    const std::string_view path = step.module_names[index(op.module)];
    plan.calls.push_back(parts_beyond(path, before));
    before = path;
  }
}

/// The storage of an attention's output; its backward reads it. kNone without one.
std::uint32_t attention_output(const Operator& op, bool backward) {
  constexpr std::size_t kOut = 4;  // after grad_out, q, k, v (docs/reference/step-file.md)
  const std::vector<TensorRef>& tensors = backward ? op.inputs : op.outputs;
  const std::size_t at = backward ? kOut : 0;
  return at < tensors.size() ? static_cast<std::uint32_t>(index(tensors[at].storage))
                             : StepPlan::kNone;
}

/// Each attention backward belongs to the forward whose output it reads. Where the forward runs
/// twice, as under checkpointing, that is the second, and the first keeps nothing; the link would
/// name the first in a model that checkpoints by itself.
void pair_attention(const Step& step, StepPlan& plan) {
  std::unordered_map<std::uint32_t, std::uint32_t> by_output;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    if (step.family_of(op).kernel_class != KernelClass::kAttention) continue;
    const std::string_view name = step.operator_name(op);
    if (name == "stoker::attention") {
      by_output[attention_output(op, false)] = event.value;
    } else if (name == "stoker::attention_backward") {
      if (const auto it = by_output.find(attention_output(op, true)); it != by_output.end()) {
        plan.attention_backward[it->second] = event.value;
        plan.attention_forward[event.value] = it->second;
        by_output.erase(it);
      }
    }
  }
}

/// What the operators that sharded_step and data_parallel_step add mean for streams, waits and
/// roles. The gathered buffer comes from the stream of the copy into it, the reduced one from the
/// reduction's; unsharded parameters and the reduction's input from the compute stream
/// (_fsdp_collectives.py: foreach_all_gather, foreach_reduce). No tensor is recorded on a second
/// stream: each is held until its last use.
class Communication {
 public:
  Communication(const Step& step, StepPlan& plan) : step_(step), plan_(plan) {}

  void assign() {
    for (const Event& event : step_.events) {
      if (event.kind != EventKind::kOperator) continue;
      const Operator& op = step_.operators[event.value];
      const std::string_view name = step_.operator_name(op);
      if (!name.starts_with("stoker::") || name.starts_with("stoker::attention")) continue;
      sharding(event.value, op, name.substr(8));
      if (name.ends_with("_copy_in")) give(op.outputs, BufferRole::kBucket);
      if (name.starts_with("stoker::reduce")) give(op.inputs, BufferRole::kGradient);
    }
  }

 private:
  void sharding(std::uint32_t o, const Operator& op, std::string_view name) {
    if (name == "all_gather_copy_in") {
      place(o, op, Stream::kCommunication);
    } else if (name == "all_gather") {
      place(o, op, Stream::kCommunication);
      for (const TensorRef& out : op.outputs) gathered_by_[index(out.storage)] = o;
    } else if (name == "all_gather_copy_out") {
      give(op.outputs, BufferRole::kParameter);
      for (const TensorRef& in : op.inputs) {
        const auto it = gathered_by_.find(index(in.storage));
        if (it != gathered_by_.end()) plan_.awaits[o] = it->second;
      }
    } else if (name == "shard_to_device") {
      place(o, op, Stream::kCommunication);
    } else if (name == "gradient_to_host") {
      place(o, op, Stream::kReduction);
    } else if (name == "reduce_scatter_copy_in") {
      plan_.awaits[o] = reduction_;
    } else if (name == "reduce_scatter" || name == "all_reduce") {
      place(o, op, Stream::kReduction);
      reduction_ = o;
    }
  }

  void place(std::uint32_t o, const Operator& op, Stream buffers) {
    plan_.launched_on[o] = Stream::kCommunication;
    for (const TensorRef& out : op.outputs) plan_.streams[index(out.storage)] = buffers;
  }

  /// Only to storages that nothing better is known of.
  void give(const std::vector<TensorRef>& tensors, BufferRole role) {
    for (const TensorRef& t : tensors) {
      BufferRole& known = plan_.roles[index(t.storage)];
      if (known == BufferRole::kTemporary || known == BufferRole::kActivation) known = role;
    }
  }

  const Step& step_;
  StepPlan& plan_;
  std::unordered_map<std::size_t, std::uint32_t> gathered_by_;  ///< storage -> all-gather
  std::uint32_t reduction_ = StepPlan::kNone;                   ///< the last one
};

}  // namespace

StepPlan plan_step(const Step& step) {
  StepPlan plan;
  plan.roles.reserve(step.storages.size());
  for (const Storage& s : step.storages) plan.roles.push_back(role_of(s.kind));
  plan.modules.resize(step.storages.size());
  plan.last_write.assign(step.storages.size(), StepPlan::kNone);
  plan.sums = find_gradient_sums(step);
  plan.attention_backward.assign(step.operators.size(), StepPlan::kNone);
  plan.attention_forward.assign(step.operators.size(), StepPlan::kNone);
  plan.streams.assign(step.storages.size(), Stream::kCompute);
  plan.launched_on.assign(step.operators.size(), Stream::kCompute);
  plan.awaits.assign(step.operators.size(), StepPlan::kNone);
  list_gradients(step, plan);
  mark_activations(step, plan);
  assign_modules(step, plan);
  count_calls(step, plan);
  pair_attention(step, plan);
  Communication(step, plan).assign();
  return plan;
}

}  // namespace stoker
