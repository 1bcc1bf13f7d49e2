#include "lower/step_plan.h"

#include <unordered_map>

#include "step/work.h"

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

/// Each attention backward belongs to the nearest earlier forward with its link: under
/// checkpointing the recomputed one, and the first run then keeps nothing.
void pair_attention(const Step& step, StepPlan& plan) {
  std::unordered_map<std::uint32_t, std::uint32_t> latest;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    const std::string_view name = step.operator_name(op);
    if (name == "stoker::attention") {
      latest[op.link] = event.value;
    } else if (name == "stoker::attention_backward") {
      if (const auto it = latest.find(op.link); it != latest.end()) {
        plan.attention_backward[it->second] = event.value;
        plan.attention_forward[event.value] = it->second;
        latest.erase(it);
      }
    }
  }
}

/// Streams and waits of the operators that sharded_step adds. The gathered buffer comes from the
/// stream of the copy into it, the reduced one from the reduction's; unsharded parameters and the
/// reduction's input from the compute stream (_fsdp_collectives.py: foreach_all_gather,
/// foreach_reduce). No tensor is recorded on a second stream: each is held until its last use.
void assign_streams(const Step& step, StepPlan& plan) {
  std::unordered_map<std::uint32_t, std::uint32_t> gathered_by;  // storage -> all-gather
  std::uint32_t reduction = StepPlan::kNone;
  for (const Event& event : step.events) {
    if (event.kind != EventKind::kOperator) continue;
    const Operator& op = step.operators[event.value];
    const std::string_view name = step.operator_name(op);
    if (!name.starts_with("stoker::")) continue;
    const auto place = [&](Stream buffers) {
      plan.launched_on[event.value] = Stream::kCommunication;
      for (const TensorRef& out : op.outputs) plan.streams[index(out.storage)] = buffers;
    };
    if (name == "stoker::all_gather_copy_in") {
      place(Stream::kCommunication);
    } else if (name == "stoker::all_gather") {
      place(Stream::kCommunication);
      for (const TensorRef& out : op.outputs)
        gathered_by[static_cast<std::uint32_t>(index(out.storage))] = event.value;
    } else if (name == "stoker::all_gather_copy_out") {
      for (const TensorRef& in : op.inputs) {
        const auto it = gathered_by.find(static_cast<std::uint32_t>(index(in.storage)));
        if (it != gathered_by.end()) plan.awaits[event.value] = it->second;
      }
    } else if (name == "stoker::reduce_scatter_copy_in") {
      plan.awaits[event.value] = reduction;
    } else if (name == "stoker::reduce_scatter") {
      place(Stream::kReduction);
      reduction = event.value;
    }
  }
}

}  // namespace

StepPlan plan_step(const Step& step) {
  StepPlan plan;
  plan.roles.reserve(step.storages.size());
  for (const Storage& s : step.storages) plan.roles.push_back(role_of(s.kind));
  plan.modules.resize(step.storages.size());
  plan.last_write.assign(step.storages.size(), StepPlan::kNone);
  plan.attention_backward.assign(step.operators.size(), StepPlan::kNone);
  plan.attention_forward.assign(step.operators.size(), StepPlan::kNone);
  plan.streams.assign(step.storages.size(), Stream::kCompute);
  plan.launched_on.assign(step.operators.size(), Stream::kCompute);
  plan.awaits.assign(step.operators.size(), StepPlan::kNone);
  mark_activations(step, plan);
  assign_modules(step, plan);
  pair_attention(step, plan);
  assign_streams(step, plan);
  return plan;
}

}  // namespace stoker
