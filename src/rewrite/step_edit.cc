#include "rewrite/step_edit.h"

#include <utility>

namespace stoker {

std::uint32_t StepEdit::add_storage(Storage storage) {
  step_.storages.push_back(std::move(storage));
  return static_cast<std::uint32_t>(step_.storages.size() - 1);
}

std::uint32_t StepEdit::add_operator(Operator op) {
  step_.operators.push_back(std::move(op));
  return static_cast<std::uint32_t>(step_.operators.size() - 1);
}

Step StepEdit::finish() {
  std::vector<Event> events;
  for (std::size_t e = 0; e < step_.events.size(); ++e) {
    events.insert(events.end(), before_[e].begin(), before_[e].end());
    if (!removed_[e]) events.push_back(step_.events[e]);
    events.insert(events.end(), after_[e].begin(), after_[e].end());
  }
  events.insert(events.end(), before_.back().begin(), before_.back().end());
  step_.events = std::move(events);
  return std::move(step_);
}

EventIndex::EventIndex(const Step& step)
    : allocated(step.storages.size(), kNowhere),
      freed(step.storages.size(), kNowhere),
      maker(step.storages.size(), kNowhere) {
  std::vector<std::uint32_t> waiting;
  for (std::size_t e = 0; e < step.events.size(); ++e) {
    const Event& event = step.events[e];
    switch (event.kind) {
      case EventKind::kAllocate:
        allocated[event.value] = e;
        waiting.push_back(event.value);
        break;
      case EventKind::kFree:
        freed[event.value] = e;
        break;
      case EventKind::kOperator:
        for (const std::uint32_t s : waiting) maker[s] = e;
        waiting.clear();
        break;
      case EventKind::kPhase:
        if (Phase(event.value) == Phase::kBackward) backward = e;
        break;
      case EventKind::kSynchronize:
        break;
    }
  }
}

std::size_t begin_of_operator(const Step& step, std::size_t position) {
  while (position > 0 && step.events[position - 1].kind == EventKind::kAllocate) --position;
  return position;
}

bool is_within(std::string_view name, std::string_view outer) {
  return outer.empty() || (name.substr(0, outer.size()) == outer &&
                           (name.size() == outer.size() || name[outer.size()] == '.'));
}

}  // namespace stoker
