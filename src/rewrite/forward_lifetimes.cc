#include "rewrite/forward_lifetimes.h"

#include <algorithm>
#include <string_view>

namespace stoker {
namespace {

/// The outermost module around `user` that is not around `maker` too; empty when there is none.
std::string_view entered_module(std::string_view maker, std::string_view user) {
  for (std::size_t dot = user.find('.');; dot = user.find('.', dot + 1)) {
    const std::string_view outer = user.substr(0, dot);
    if (!outer.empty() && !is_within(maker, outer)) return outer;
    if (dot == std::string_view::npos) return {};
  }
}

}  // namespace

ForwardLifetimes::ForwardLifetimes(const Step& step, const EventIndex& index)
    : end_(step.storages.size()), cast_(step.storages.size()) {
  const std::size_t forward_end = std::min(index.backward, step.events.size());
  for (std::size_t e = 0; e < forward_end; ++e) {
    if (step.events[e].kind == EventKind::kOperator) operators_.push_back(e);
  }
  find_casts(step);
  for (std::size_t i = 0; i < operators_.size(); ++i) {
    const Operator& op = step.operators[step.events[operators_[i]].value];
    for (const auto* list : {&op.inputs, &op.outputs}) {
      for (const TensorRef& tensor : *list) {
        const std::size_t s = stoker::index(tensor.storage);
        const std::size_t maker = index.maker[s];
        if (maker == kNowhere) continue;
        const ModuleId module = step.operators[step.events[maker].value].module;
        end_[s] = std::max(end_[s], end_of_call(step, module, i));
      }
    }
  }
  for (std::size_t s = 0; s < end_.size(); ++s) {
    if (end_[s] == 0 && index.maker[s] != kNowhere) end_[s] = index.maker[s];
    if (cast_[s] && forward_end > 0) end_[s] = forward_end - 1;
  }
}

void ForwardLifetimes::find_casts(const Step& step) {
  if (step.precision.substr(0, 3) != "amp") return;
  std::vector<bool> trained(step.storages.size());
  for (const Parameter& p : step.parameters) trained[index(p.storage)] = p.requires_grad;
  for (const std::size_t e : operators_) {
    const Operator& op = step.operators[step.events[e].value];
    if (op.inputs.size() != 1 || op.outputs.size() != 1) continue;
    if (trained[index(op.inputs[0].storage)] && step.operator_name(op) == "aten::_to_copy")
      cast_[index(op.outputs[0].storage)] = true;
  }
}

std::size_t ForwardLifetimes::end_of_call(const Step& step, ModuleId maker, std::size_t use) const {
  const auto module = [&](std::size_t i) -> std::string_view {
    return step.module_names[index(step.operators[step.events[operators_[i]].value].module)];
  };
  const std::string_view call = entered_module(step.module_names[index(maker)], module(use));
  std::size_t last = use;
  if (!call.empty()) {
    while (last + 1 < operators_.size() && is_within(module(last + 1), call)) ++last;
  }
  return operators_[last];
}

}  // namespace stoker
