#pragma once

#include "lower/common/math_attention.h"

namespace stoker {

/// The backend that PyTorch takes on a CPU (ATen/native/transformers/sdp_utils_cpp.cpp): flash,
/// with or without a mask, in every precision; the plain products where there is dropout or the
/// values are of another width.
[[nodiscard]] AttentionBackend choose_cpu_attention(const AttentionShape& shape,
                                                    const Attributes& attributes);

/// Scratch of one call of _scaled_dot_product_flash_attention_for_cpu or its backward, for all
/// threads (ATen/native/cpu/FlashAttentionKernel.cpp).
[[nodiscard]] Bytes cpu_attention_scratch(const AttentionShape& shape, DType dtype, int threads);

/// Emits the forward: what it leaves for the backward is a logarithm a row.
[[nodiscard]] SavedBuffers emit_cpu_attention_forward(Emitter& emit, const AttentionShape& shape,
                                                      const Kernel& base, int threads,
                                                      ModuleId module);

/// Emits the backward; the saved buffers are freed by the caller.
void emit_cpu_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                 int threads, ModuleId module);

}  // namespace stoker
