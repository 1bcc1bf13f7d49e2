#pragma once

#include "step/step.h"

namespace stoker {

/// The forward and the loss of a training step alone, as a validation pass runs them. Under
/// torch.no_grad() a tensor dies with its last use (ForwardLifetimes). With gradients everything
/// that the backward would need becomes an output, since it hangs on the loss and dies when the
/// next pass's loss takes that name: two passes' graphs overlap. Storage ids stay those of `step`,
/// so that parameters and buffers are shared with it.
///
/// In a sharded step, parameters that stay gathered until the backward stay until the end.
///
/// Approximations: dropout and batch statistics are taken as in training; with gradients, what an
/// attention backend saves is kept inside checkpointed modules too.
[[nodiscard]] Step evaluation_step(const Step& step, bool no_grad);

}  // namespace stoker
