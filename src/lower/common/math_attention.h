#pragma once

#include <vector>

#include "lower/common/emitter.h"
#include "step/step.h"

namespace stoker {

/// What an attention's forward leaves for its backward, to be freed after it.
using SavedBuffers = std::vector<BufferId>;

/// Emits the forward of an attention as plain products, the same on all devices: its saved buffers,
/// temporaries and kernels.
[[nodiscard]] SavedBuffers emit_math_attention_forward(Emitter& emit, const AttentionShape& shape,
                                                       const Kernel& base,
                                                       const Attributes& attributes,
                                                       ModuleId module);

/// Emits the backward: temporaries and kernels; the saved buffers are freed by the caller.
void emit_math_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                  const Attributes& attributes, ModuleId module);

}  // namespace stoker
