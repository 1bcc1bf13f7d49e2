#include "rewrite/shard_units.h"

#include <algorithm>
#include <unordered_set>

#include "rewrite/step_edit.h"

namespace stoker {
namespace {

constexpr std::uint32_t kNoUnit = 0xffffffff;

/// Index of the innermost block that holds `name`; the root's otherwise.
std::uint32_t unit_of(std::string_view name, const std::vector<ShardUnit>& units) {
  std::uint32_t best = static_cast<std::uint32_t>(units.size()) - 1;
  for (std::uint32_t u = 0; u + 1 < units.size(); ++u) {
    if (is_within(name, units[u].module) && units[u].module.size() > units[best].module.size()) {
      best = u;
    }
  }
  return best;
}

/// Finds which units each operator belongs to, and spans of events from that.
class Spans {
 public:
  Spans(const Step& step, std::vector<ShardUnit>& units) : step_(step), units_(units) {
    by_storage_.assign(step.storages.size(), kNoUnit);
    gradients_.assign(step.storages.size(), kNoUnit);
    for (const std::string& name : step.module_names) by_module_.push_back(unit_of(name, units));
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      for (const std::uint32_t p : units[u].parameters) {
        by_storage_[index(step.parameters[p].storage)] = u;
        if (step.parameters[p].gradient >= 0)
          gradients_[static_cast<std::size_t>(step.parameters[p].gradient)] = u;
      }
    }
  }

  void find() {
    for (std::size_t e = 0; e < step_.events.size(); ++e) {
      const Event& event = step_.events[e];
      if (event.kind == EventKind::kPhase) phase_ = Phase(event.value);
      if (event.kind == EventKind::kOperator) operator_at(e, step_.operators[event.value]);
    }
    find_root();
  }

 private:
  bool backward() const { return phase_ == Phase::kBackward || phase_ == Phase::kEnd; }

  void operator_at(std::size_t e, const Operator& op) {
    // Which operators of the backward come after the loss itself: those of the model's own forward.
    if (phase_ == Phase::kForward && op.link != 0) model_links_.insert(op.link);
    if (phase_ == Phase::kForward) widen(model_, e);
    if (backward()) {
      if (first_backward_ == EventSpan::kNever) first_backward_ = e;
      if (model_backward_ == EventSpan::kNever && model_links_.contains(op.link))
        model_backward_ = e;
    }
    member(by_module_[index(op.module)], e);
    for (const TensorRef& in : op.inputs) member(by_storage_[index(in.storage)], e);
    for (const TensorRef& out : op.outputs) {
      member(by_storage_[index(out.storage)], e);
      member(gradients_[index(out.storage)], e);
    }
  }

  void member(std::uint32_t unit, std::size_t e) {
    if (unit == kNoUnit) return;
    widen(backward() ? units_[unit].backward : units_[unit].forward, e);
  }

  void widen(EventSpan& span, std::size_t e) const {
    if (span.empty()) span.begin = begin_of_operator(step_, e);
    span.end = e + 1;
    while (span.end < step_.events.size() && step_.events[span.end].kind == EventKind::kFree)
      ++span.end;
  }

  void find_root() {
    ShardUnit& root = units_.back();
    root.forward = model_;
    if (first_backward_ == EventSpan::kNever) return;
    // A model that computes its own loss gets its first gradient at once.
    const bool own_loss = !loss_has_operators();
    root.backward = {};
    widen(root.backward,
          own_loss || model_backward_ == EventSpan::kNever ? first_backward_ : model_backward_);
    root.backward.end = EventSpan::kNever;
  }

  bool loss_has_operators() const {
    Phase phase = Phase::kLoad;
    for (const Event& event : step_.events) {
      if (event.kind == EventKind::kPhase) phase = Phase(event.value);
      if (event.kind == EventKind::kOperator && phase == Phase::kLoss) return true;
    }
    return false;
  }

  const Step& step_;
  std::vector<ShardUnit>& units_;
  std::vector<std::uint32_t> by_module_, by_storage_, gradients_;
  std::unordered_set<std::uint32_t> model_links_;
  EventSpan model_;
  std::size_t first_backward_ = EventSpan::kNever, model_backward_ = EventSpan::kNever;
  Phase phase_ = Phase::kLoad;
};

ModuleId module_id(const Step& step, const std::string& name) {
  const auto it = std::find(step.module_names.begin(), step.module_names.end(), name);
  return ModuleId(it == step.module_names.end()
                      ? 0
                      : static_cast<std::uint32_t>(it - step.module_names.begin()));
}

}  // namespace

std::vector<ShardUnit> shard_units(const Step& step, const std::vector<std::string>& blocks) {
  std::vector<ShardUnit> units;
  for (const std::string& block : blocks) {
    if (!block.empty()) units.push_back({block, module_id(step, block), {}, {}, {}});
  }
  units.push_back({"", module_id(step, ""), {}, {}, {}});
  for (std::uint32_t p = 0; p < step.parameters.size(); ++p) {
    units[unit_of(step.parameters[p].name, units)].parameters.push_back(p);
  }
  Spans(step, units).find();
  std::stable_sort(units.begin(), units.end() - 1, [](const ShardUnit& a, const ShardUnit& b) {
    return a.forward.end < b.forward.end;
  });
  std::erase_if(units, [](const ShardUnit& u) { return u.parameters.empty(); });
  return units;
}

}  // namespace stoker
