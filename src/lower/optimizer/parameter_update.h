#pragma once

#include "lower/common/lowering.h"

namespace stoker {

/// What a training loop does between the last backward of an iteration and its end, apart from
/// zero_grad(): unscaling, clipping, the optimizer's step, the moving average.
void emit_parameter_update(const Lowering& lowering);

}  // namespace stoker
