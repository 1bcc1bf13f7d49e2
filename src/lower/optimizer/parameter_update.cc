#include "lower/optimizer/parameter_update.h"

#include <optional>
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

/// What a moving average copies: frozen parameters and buffers too.
std::vector<TrainedParameter> averaged_tensors(const Lowering& l) {
  std::vector<TrainedParameter> all;
  for (const Parameter& p : l.step.parameters) {
    all.push_back(trained_parameter(l.step, l.sizes, p, l.plan.modules[index(p.storage)]));
  }
  for (const NamedTensor& b : l.step.buffers) {
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
  if (l.job.ema) emit_ema(l.emit, averaged_tensors(l));
}

}  // namespace stoker
