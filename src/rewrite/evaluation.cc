#include "rewrite/evaluation.h"

#include <cstdint>
#include <vector>

#include "rewrite/forward_lifetimes.h"
#include "rewrite/step_edit.h"

namespace stoker {
namespace {

/// Parameters that FSDP gathered and keeps until the backward that does not come: those of the root
/// unit, and in ZeRO-2 of all. By storage.
std::vector<bool> kept_gathered(const Step& step) {
  std::vector<bool> gathered(step.storages.size());
  for (const Operator& op : step.operators) {
    if (step.operator_name(op) != "stoker::all_gather_copy_out") continue;
    for (const TensorRef& out : op.outputs) gathered[index(out.storage)] = true;
  }
  return gathered;
}

/// Workspaces of oneDNN's recurrent layers, which a forward without gradients does not make. By
/// storage.
std::vector<bool> recurrent_workspaces(const Step& step) {
  constexpr std::size_t kWorkspace = 3;  // of aten::mkldnn_rnn_layer's results
  std::vector<bool> found(step.storages.size());
  for (const Operator& op : step.operators) {
    if (step.operator_name(op) == "aten::mkldnn_rnn_layer" && op.outputs.size() > kWorkspace)
      found[index(op.outputs[kWorkspace].storage)] = true;
  }
  return found;
}

}  // namespace

Step evaluation_step(const Step& step, bool no_grad) {
  const EventIndex at(step);
  if (step.mode != "train" || at.backward == kNowhere) return step;
  const ForwardLifetimes lifetimes(step, at);
  const std::vector<bool> gathered = kept_gathered(step);
  const std::vector<bool> workspaces = recurrent_workspaces(step);
  StepEdit edit(step);
  edit.step().mode = "inference";
  for (Parameter& p : edit.step().parameters) p.gradient = -1;
  for (std::uint32_t s = 0; s < step.storages.size(); ++s) {
    const bool kept = step.storages[s].kind == StorageKind::kTransient &&
                      at.allocated[s] != kNowhere && at.allocated[s] < at.backward &&
                      at.freed[s] > at.backward;
    if (!kept) continue;
    if (no_grad && workspaces[s]) edit.step().storages[s].bytes = {};
    if (gathered[s]) {
      edit.insert_before(at.backward, {EventKind::kFree, s});
    } else if (no_grad) {
      edit.insert_after(lifetimes.end_of(s), {EventKind::kFree, s});
    } else {
      // The graph hangs on the loss, so it goes when the next pass's loss takes that name.
      edit.step().storages[s].kind = StorageKind::kOutput;
    }
  }
  for (std::size_t e = at.backward; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind != EventKind::kPhase || Phase(event.value) != Phase::kEnd) edit.remove(e);
  }
  return edit.finish();
}

}  // namespace stoker
