#include "lower/optimizer/parameter_update.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lower/optimizer/gradient_steps.h"
#include "lower/optimizer/optimizer.h"

namespace stoker {
namespace {

std::vector<TrainedParameter> trained_parameters(const Lowering& l) {
  std::vector<TrainedParameter> trained;
  for (const Parameter& p : l.step.parameters) {
    if (p.gradient < 0) continue;
    const ModuleId module = l.plan.modules[static_cast<std::size_t>(p.gradient)];
    trained.push_back(trained_parameter(l.step, l.sizes, p, module));
  }
  return trained;
}

/// Buffers that stand for what a script keeps in memory beside its models.
constexpr std::array<std::string_view, 2> kBesideModels{"kept beside the step",
                                                        "the script's own data"};

/// Whether a tensor belongs to the model of that name; any of a model does where the name is empty.
bool is_of(std::string_view tensor, const std::string& model) {
  if (!model.empty()) return tensor.starts_with(model + ".");
  return std::find(kBesideModels.begin(), kBesideModels.end(), tensor) == kBesideModels.end();
}

/// What a moving average of a model copies: frozen parameters and buffers too.
std::vector<TrainedParameter> averaged_tensors(const Lowering& l, const std::string& model) {
  std::vector<TrainedParameter> all;
  for (const Parameter& p : l.step.parameters) {
    if (!is_of(p.name, model)) continue;
    all.push_back(trained_parameter(l.step, l.sizes, p, l.plan.modules[index(p.storage)]));
  }
  for (const NamedTensor& b : l.step.buffers) {
    if (!is_of(b.name, model)) continue;
    TrainedParameter buffer;
    buffer.bytes = l.sizes.tensor(l.step, b.type);
    buffer.dtype = l.step.types[index(b.type)].dtype;
    if (buffer.bytes.count() > 0) all.push_back(buffer);
  }
  return all;
}

}  // namespace

void emit_parameter_update(const Lowering& l) {
  const std::vector<TrainedParameter> trained = trained_parameters(l);
  const bool scaled = l.job.grad_scaler && !trained.empty();
  std::optional<BufferId> found_inf;
  if (scaled) found_inf = emit_unscale(l.emit, trained);
  if (l.job.clip) emit_clip(l.emit, trained, l.job.clip_checks, l.device.default_loop());
  if (scaled) emit_overflow_check(l.emit, l.job.optimizer.loop);
  emit_optimizer_step(l.emit, l.job.optimizer, optimizer_groups(l.step, l.job.optimizer), trained);
  if (found_inf) emit_scale_update(l.emit, *found_inf);
  if (!l.job.ema) return;
  const std::vector<std::string>& averages = l.step.training.averages;
  if (averages.empty()) return emit_ema(l.emit, averaged_tensors(l, ""));
  for (const std::string& model : averages) emit_ema(l.emit, averaged_tensors(l, model));
}

}  // namespace stoker
