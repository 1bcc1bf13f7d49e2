#pragma once

#include "step/step.h"

namespace stoker {

/// The step with the operators of each compiled graph as the kernels that torch.compile's default
/// back end (Inductor) makes of them: what only one kernel sees is never in memory, what several
/// see is written once, and a result takes the memory of an operand that dies with it and has its
/// size. The operators around the graphs stay as they are.
///
///   stoker::fused            reads, writes: any number of element-wise operators, sums along rows
///   stoker::fused_reduction  the same with sums across rows
///
/// The rules are those of fused_kernels(); what is kept for the backward and what is computed again
/// was decided by PyTorch's own partitioner at capture.
[[nodiscard]] Step compiled_step(const Step& step);

}  // namespace stoker
