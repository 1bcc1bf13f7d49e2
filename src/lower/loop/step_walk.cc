#include "lower/loop/step_walk.h"

#include <algorithm>

#include "lower/optimizer/gradient_steps.h"

namespace stoker {
namespace {

StepPhase step_phase(Phase phase) {
  switch (phase) {
    case Phase::kLoad:
      return StepPhase::kLoad;
    case Phase::kForward:
      return StepPhase::kForward;
    case Phase::kLoss:
      return StepPhase::kLoss;
    case Phase::kBackward:
    case Phase::kEnd:
      return StepPhase::kBackward;
  }
  return StepPhase::kForward;
}

}  // namespace

void StepWalk::micro_batch(MicroBatch micro) {
  micro_ = micro;
  l_.emit.enter(StepPhase::kLoad);
  batch_.load(micro);
  if (micro.first() && l_.job.zero_grad_before_forward) gradients_.zero_before_use();
  batch_.begin_outputs();
  for (std::size_t e = 0; e < l_.step.events.size(); ++e) event(static_cast<std::uint32_t>(e));
  if (scaled_loss_) l_.emit.free(*scaled_loss_);
  scaled_loss_.reset();
  batch_.replace_outputs(micro);
}

void StepWalk::event(std::uint32_t e) {
  const Event& event = l_.step.events[e];
  switch (event.kind) {
    case EventKind::kPhase:
      return enter(Phase(event.value));
    case EventKind::kAllocate:
      if (is_left_to_operator(e)) return left_.push_back(event.value);
      return allocate(event.value);
    case EventKind::kFree:
      if (!storages_.empty(event.value) && l_.plan.sums.lies_in[event.value] == event.value)
        l_.emit.free(storages_.of(event.value));
      return;
    case EventKind::kOperator:
      return run_operator(e, event.value);
    case EventKind::kSynchronize:
      return l_.emit.synchronize();
  }
}

void StepWalk::enter(Phase phase) {
  // A graph hangs on the loss, whose name is taken last.
  if (!l_.graph_kept && (phase == Phase::kLoss || phase == Phase::kBackward))
    batch_.replace_outputs(micro_);
  if (phase == Phase::kBackward) {
    if (micro_.first() && l_.job.zero_grad_before_backward) gradients_.zero_before_use();
    scale_loss();
  }
  l_.emit.enter(step_phase(phase));
}

/// `scaler.scale(loss).backward()`: the scaled loss dies with the statement.
void StepWalk::scale_loss() {
  if (!l_.job.grad_scaler || scaled_loss_) return;
  const std::size_t from = l_.emit.instructions().size();
  scaled_loss_ = emit_scale_loss(l_.emit);
  if (!micro_.first() || l_.extra) drop_births(l_.emit.instructions(), from);
}

void StepWalk::allocate(std::uint32_t storage) {
  if (storages_.empty(storage) || l_.plan.sums.in_place[storage]) return;
  storage = l_.plan.sums.lies_in[storage];
  const BufferRole role = l_.plan.roles[storage];
  switch (l_.step.storages[storage].kind) {
    case StorageKind::kPersistent:
      if (micro_.first() && !l_.extra)
        l_.emit.allocate(storages_.ensure(storage, role), When::kFirst);
      return;
    case StorageKind::kOutput:
      return batch_.allocate_output(storage);
    case StorageKind::kGradient:
      return gradients_.allocate(storage, micro_);
    default:
      return l_.emit.allocate(storages_.ensure(storage, role));
  }
}

bool StepWalk::is_left_to_operator(std::uint32_t e) const {
  const auto& events = l_.step.events;
  const std::uint32_t storage = events[e].value;
  while (e < events.size() && events[e].kind == EventKind::kAllocate) ++e;
  if (e == events.size() || events[e].kind != EventKind::kOperator) return false;
  if (!kernels_->allocates(events[e].value)) return false;
  const auto& outputs = l_.step.operators[events[e].value].outputs;
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const TensorRef& out) { return index(out.storage) == storage; });
}

void StepWalk::allocate_left(std::uint32_t storage) {
  const auto it = std::find(left_.begin(), left_.end(), storage);
  if (it == left_.end()) return;
  left_.erase(it);
  allocate(storage);
}

void StepWalk::run_operator(std::uint32_t e, std::uint32_t op_index) {
  if (const std::uint32_t awaited = l_.plan.awaits[op_index]; awaited != StepPlan::kNone)
    l_.emit.await_communication(awaited);
  kernels_->run(op_index, [this](std::uint32_t storage) { allocate_left(storage); });
  while (!left_.empty()) allocate_left(left_.front());
  const Stream stream = l_.plan.launched_on[op_index];
  if (stream == Stream::kCommunication) last_collective_ = op_index;
  for (const TensorRef& out : l_.step.operators[op_index].outputs)
    gradients_.written(static_cast<std::uint32_t>(index(out.storage)), e, micro_, stream);
}

void StepWalk::await_collectives() {
  if (last_collective_ != StepPlan::kNone) l_.emit.await_communication(last_collective_);
  last_collective_ = StepPlan::kNone;
}

}  // namespace stoker
