#pragma once

#include <vector>

#include "device/machine.h"
#include "lower/common/emitter.h"
#include "program/job.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// The backend that PyTorch's SDPA dispatcher takes on this GPU
/// (aten/src/ATen/native/transformers/cuda/ sdp_utils.cpp): flash for half precision, head size <=
/// 256, no mask, from Ampere on; memory-efficient when head sizes are aligned (4 elements in fp32,
/// 8 in half); otherwise the plain products ("math").
[[nodiscard]] AttentionBackend choose_attention(const AttentionShape& shape, DType dtype,
                                                const Attributes& attributes, const Gpu& gpu);

/// What the forward leaves for its backward, to be freed after it.
using SavedBuffers = std::vector<BufferId>;

/// Emits the forward of one attention operator: its saved buffers, temporaries and kernels.
[[nodiscard]] SavedBuffers emit_attention_forward(Emitter& emit, const AttentionShape& shape,
                                                  const Kernel& base, const Attributes& attributes,
                                                  ModuleId module);

/// Emits the backward: temporaries and kernels; the saved buffers are freed by the caller.
void emit_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                             const Attributes& attributes, ModuleId module);

}  // namespace stoker
