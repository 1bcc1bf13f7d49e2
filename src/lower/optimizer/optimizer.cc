#include "lower/optimizer/optimizer.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "lower/optimizer/optimizer_recipes.h"

namespace stoker {
namespace {

/// `step` of a fused optimizer: one float32 on the device for each parameter.
constexpr Bytes kStepNumber{4};

constexpr int kQuantisedBits = 8;

/// The settings that one group steps with.
OptimizerSettings settings_of(const OptimizerSettings& settings,
                              const std::vector<GroupSettings>& groups, std::int32_t group) {
  if (groups.empty()) return settings;
  const std::size_t last = groups.size() - 1;
  const GroupSettings& one = groups[std::min(static_cast<std::size_t>(group), last)];
  OptimizerSettings own = one.own.value_or(settings);
  own.weight_decay = one.weight_decay;
  return own;
}

bool same_optimizer(const OptimizerSettings& a, const OptimizerSettings& b) {
  return a.kind == b.kind && a.state_bits == b.state_bits && a.momentum == b.momentum &&
         a.nesterov == b.nesterov && a.centered == b.centered && a.amsgrad == b.amsgrad &&
         a.decoupled == b.decoupled && a.history == b.history;
}

/// What steps a group of the capture, in the loop of `settings` where a request chose one.
OptimizerSettings of_group(const Step& step, const CapturedOptimizer::Group& group,
                           const OptimizerSettings& captured, const OptimizerSettings& settings) {
  OptimizerSettings own = captured_optimizer(step, group);
  if (settings.loop == captured.loop) return own;
  own.loop = settings.loop;
  own.loop_asked = settings.loop_asked;
  return own;
}

void step_group(Emitter& emit, const OptimizerSettings& settings, const ParameterList& group) {
  StepWriter step(emit);
  if (settings.state_bits == kQuantisedBits) return step_quantised(step, settings, group);
  switch (settings.loop) {
    case OptimizerLoop::kForeach:
      return step_foreach(step, settings, group);
    case OptimizerLoop::kForLoop:
      return step_for_loop(step, settings, group);
    case OptimizerLoop::kFused:
      return has_fused(settings.kind) ? step_fused(step, settings, group)
                                      : step_foreach(step, settings, group);
  }
}

}  // namespace

bool has_fused(OptimizerKind kind) {
  return kind == OptimizerKind::kSgd || kind == OptimizerKind::kAdam ||
         kind == OptimizerKind::kAdamW || kind == OptimizerKind::kAdagrad;
}

void step_fused(StepWriter& step, const OptimizerSettings& o, const ParameterList& group) {
  const int copies = state_tensors(o);
  for (const TrainedParameter& p : group) {
    if (o.kind == OptimizerKind::kAdagrad) {
      step.constructed(p, kStepNumber);
      step.constructed(p, p.bytes);
      continue;
    }
    if (o.kind != OptimizerKind::kSgd) step.state(p, kStepNumber);
    for (int copy = 0; copy < copies; ++copy) step.state(p, p.bytes);
  }
  for (const ParameterList& list : by_dtype(group)) step.run(list, {2 + copies, 1 + copies});
}

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
  const OptimizerSettings all = captured_optimizer(step);
  for (const CapturedOptimizer::Group& group : step.optimizer.groups) {
    const OptimizerSettings own = of_group(step, group, all, settings);
    GroupSettings& added = groups.emplace_back(GroupSettings{own.weight_decay});
    const bool as_all = same_optimizer(own, all) && own.loop == settings.loop;
    if (same_optimizer(settings, all) && !as_all) added.own = own;
  }
  if (groups.empty()) return {{settings.weight_decay}};
  const auto decays = [](const GroupSettings& g) { return g.weight_decay != 0; };
  const bool any = std::any_of(groups.begin(), groups.end(), decays);
  if (settings.weight_decay == all.weight_decay) return groups;
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
  if (settings.loop == OptimizerLoop::kFused && !has_fused(settings.kind)) {
    emit.program().diagnostics.add(
        "no_fused_optimizer", Severity::kWarning,
        "PyTorch has no fused " + std::string(name_of(settings.kind)) + ": stepped as foreach");
  }
  std::map<std::int32_t, ParameterList> by_group;
  for (const TrainedParameter& p : parameters) {
    if (p.group >= 0) by_group[p.group].push_back(p);
  }
  for (const auto& [number, members] : by_group) {
    step_group(emit, settings_of(settings, groups, number), members);
  }
}

void emit_optimizer_step(Emitter& emit, const OptimizerSettings& settings,
                         const std::vector<TrainedParameter>& parameters) {
  emit_optimizer_step(emit, settings, {{settings.weight_decay}}, parameters);
}

}  // namespace stoker
