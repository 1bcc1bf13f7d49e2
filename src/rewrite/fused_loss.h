#pragma once

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// The step with each cross entropy over class indices as one kernel that reads the scores where
/// the model left them, in their own precision, and writes their gradient over them (flash-attn's
/// CrossEntropyLoss with inplace_backward=True, Liger's cross entropy), with label smoothing and
/// ignored classes where the loss has them. A z-loss beside it stays as captured. Copies of the
/// scores in FP32, their logarithms, and copies of the gradient on its way back are gone. Where the
/// backward of what made the scores reads them again, the gradient has memory of its own.
///
///   stoker::cross_entropy           scores, classes -> loss, one number a row in FP32
///   stoker::cross_entropy_backward  scores, numbers -> the gradient, over the scores
///
/// Refused for a step that computes none.
[[nodiscard]] Result<Step> with_fused_loss(const Step& step);

}  // namespace stoker
