#include "scenario/request/fill_optimizer.h"

#include <string>

#include "base/setting.h"
#include "lower/optimizer/optimizer_recipes.h"
#include "scenario/request/refuse.h"

namespace stoker {
namespace {

/// A capture whose optimizer we do not know cannot be taken as it is.
Status check_captured(const OptimizerRequest& o, const Step& step) {
  const CapturedOptimizer& captured = step.optimizer;
  if (o.kind && !captured.in_backward.empty() && *o.kind != OptimizerKind::kNone) {
    return refuse("the capture holds " + captured.in_backward +
                      ", which steps in a hook of each gradient; leave the flag out, or capture "
                      "the model without the hooks",
                  Setting::kOptimizer);
  }
  if (o.kind || step.mode != "train" || captured.name.empty()) return {};
  const auto known = parse_optimizer(captured.name);
  if (known) return {};
  return refuse("the capture function returned " +
                    (captured.class_name.empty() ? captured.name : captured.class_name) +
                    ", which is not modelled; name the nearest that is: " + known.error().message,
                Setting::kOptimizer);
}

Status choose_loop(const OptimizerRequest& o, OptimizerSettings& settings) {
  if (!o.loop) return {};
  if (settings.state_bits < 32)
    return refuse("is PyTorch's; " + name_of(settings) + " has one kernel for each tensor",
                  Setting::kOptimizerLoop);
  if (*o.loop == OptimizerLoop::kFused && !has_fused(settings.kind)) {
    return refuse("PyTorch has no fused " + std::string(name_of(settings.kind)) +
                      "; sgd, adam, adamw and adagrad have one",
                  Setting::kOptimizerLoop);
  }
  settings.loop = *o.loop;
  settings.loop_asked = true;
  return {};
}

}  // namespace

Result<OptimizerSettings> optimizer_of(const OptimizerRequest& o, const Step& step) {
  OptimizerSettings settings = captured_optimizer(step);
  TRY(check_captured(o, step));
  if (o.kind && (*o.kind != settings.kind || o.state_bits != settings.state_bits)) {
    settings = OptimizerSettings{
        .kind = *o.kind, .loop = default_loop(*o.kind), .state_bits = o.state_bits};
    if (*o.kind != OptimizerKind::kSgd) settings.momentum = 0;
  }
  TRY(choose_loop(o, settings));
  const bool sgd = settings.kind == OptimizerKind::kSgd;
  const std::string leave_out = "; leave it out with " + std::string(name_of(settings.kind));
  if (o.momentum && !sgd && settings.kind != OptimizerKind::kRmsprop)
    TRY(refuse("is a setting of sgd and rmsprop" + leave_out, Setting::kMomentum));
  if (o.nesterov && !sgd) TRY(refuse("is a setting of sgd" + leave_out, Setting::kNesterov));
  if (o.momentum) settings.momentum = *o.momentum;
  if (o.weight_decay) settings.weight_decay = *o.weight_decay;
  settings.nesterov = settings.nesterov || o.nesterov;
  if (o.nesterov && settings.momentum == 0) {
    TRY(refuse("Nesterov momentum needs a momentum: " + mark(Setting::kMomentum) + " 0.9",
               Setting::kNesterov));
  }
  return settings;
}

}  // namespace stoker
