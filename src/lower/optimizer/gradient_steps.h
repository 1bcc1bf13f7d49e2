#pragma once

#include <vector>

#include "lower/common/emitter.h"
#include "lower/optimizer/optimizer.h"

namespace stoker {

// What a training loop does with gradients and parameters around optimizer.step(), in this order:
//
//   emit_scale_loss      scaler.scale(loss), before the backward
//   emit_unscale         scaler.unscale_(optimizer)
//   emit_clip            torch.nn.utils.clip_grad_norm_(parameters, norm)
//   emit_overflow_check  scaler.step(optimizer): the host reads whether a gradient was infinite ...
//   emit_optimizer_step  ... and steps
//   emit_scale_update    scaler.update()
//   emit_ema             ema.update_parameters(model)
//
// Sequence and bytes of the allocations are PyTorch's own (scripts/record-optimizers).

/// `scaler.scale(loss)`: the scale and its counter are born in the first iteration. Returns the
/// scaled loss, which the caller frees after the backward.
BufferId emit_scale_loss(Emitter& emit);

/// Divides the gradients by the scale, in place, and looks for infinities. Returns the flag that
/// emit_scale_update frees.
BufferId emit_unscale(Emitter& emit, const std::vector<TrainedParameter>& parameters);

/// The host waits for the flag of emit_unscale. A fused optimizer reads it on the device instead:
/// nothing is emitted.
void emit_overflow_check(Emitter& emit, OptimizerLoop loop);

/// Clips the gradients to a norm, in place: as PyTorch's foreach implementation does, or (kForLoop)
/// tensor by tensor, as clip_grad_norm_ does on a CPU. With `checks` (error_if_nonfinite=True) the
/// host waits for the norm.
void emit_clip(Emitter& emit, const std::vector<TrainedParameter>& parameters, bool checks = false,
               OptimizerLoop loop = OptimizerLoop::kForeach);

/// Adjusts the scale and drops the flag.
void emit_scale_update(Emitter& emit, BufferId found_inf);

/// A moving average of all parameters and buffers: copies made at the start, one foreach pass an
/// iteration (torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn, timm's ModelEmaV3).
void emit_ema(Emitter& emit, const std::vector<TrainedParameter>& parameters_and_buffers);

}  // namespace stoker
