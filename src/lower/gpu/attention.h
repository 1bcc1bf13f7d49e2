#pragma once

#include "device/gpu.h"
#include "lower/common/math_attention.h"

namespace stoker {

/// The backend that PyTorch's SDPA dispatcher takes on this GPU
/// (aten/src/ATen/native/transformers/cuda/ sdp_utils.cpp): flash for half precision, head size <=
/// 256, no mask, from Ampere on; memory-efficient when head sizes are aligned (4 elements in fp32,
/// 8 in half); otherwise the plain products ("math").
[[nodiscard]] AttentionBackend choose_attention(const AttentionShape& shape, DType dtype,
                                                const Attributes& attributes, const Gpu& gpu);

/// Emits the forward of one fused attention (flash or memory-efficient): its saved buffers and its
/// kernel.
[[nodiscard]] SavedBuffers emit_fused_attention_forward(Emitter& emit, const AttentionShape& shape,
                                                        const Kernel& base,
                                                        const Attributes& attributes,
                                                        ModuleId module);

/// Emits its backward: temporaries and kernel; the saved buffers are freed by the caller.
void emit_fused_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                   ModuleId module);

}  // namespace stoker
