#include "rewrite/evaluation.h"

#include <cstdint>

#include "rewrite/forward_lifetimes.h"
#include "rewrite/step_edit.h"

namespace stoker {

Step evaluation_step(const Step& step, bool no_grad) {
  const EventIndex index(step);
  if (step.mode != "train" || index.backward == kNowhere) return step;
  const ForwardLifetimes lifetimes(step, index);
  StepEdit edit(step);
  edit.step().mode = "inference";
  for (Parameter& p : edit.step().parameters) p.gradient = -1;
  for (std::uint32_t s = 0; s < step.storages.size(); ++s) {
    const bool kept = step.storages[s].kind == StorageKind::kTransient &&
                      index.allocated[s] != kNowhere && index.allocated[s] < index.backward &&
                      index.freed[s] > index.backward;
    if (!kept) continue;
    if (no_grad) {
      edit.insert_after(lifetimes.end_of(s), {EventKind::kFree, s});
    } else {
      // The graph hangs on the loss, so it goes when the next pass's loss takes that name.
      edit.step().storages[s].kind = StorageKind::kOutput;
    }
  }
  for (std::size_t e = index.backward; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    if (event.kind != EventKind::kPhase || Phase(event.value) != Phase::kEnd) edit.remove(e);
  }
  return edit.finish();
}

}  // namespace stoker
