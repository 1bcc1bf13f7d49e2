#pragma once

#include "step/step.h"

namespace stoker {

/// The forward and the loss of a training step alone, as a validation pass runs them: under
/// torch.no_grad() a tensor dies at its last use in the forward; with gradients everything that the
/// backward would need lives until the outputs die. Storage ids stay those of `step`, so that
/// parameters and buffers are shared with it. Approximation: dropout and batch statistics are taken
/// as in training.
[[nodiscard]] Step evaluation_step(const Step& step, bool no_grad);

}  // namespace stoker
