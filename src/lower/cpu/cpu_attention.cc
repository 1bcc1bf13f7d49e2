#include "lower/cpu/cpu_attention.h"

#include <algorithm>
#include <cstdint>

// ATen/native/cpu/FlashAttentionKernel.cpp: cpu_flash_attention works on blocks of queries and
// keys, each thread in a buffer of its own.
namespace stoker {
namespace {

constexpr std::int64_t kLongQueries = 768, kMiddleQueries = 192;
constexpr std::int64_t kLongSplit = 256, kMiddleSplit = 64, kShortSplit = 32;
constexpr std::int64_t kKeySplit = 512;
constexpr std::int64_t kAccumulated = 4;  ///< bytes; accumulation is in float for all but double

std::int64_t query_split(std::int64_t queries) {
  const std::int64_t split = queries >= kLongQueries     ? kLongSplit
                             : queries >= kMiddleQueries ? kMiddleSplit
                                                         : kShortSplit;
  return std::min(split, queries);
}

bool is_reduced(DType dtype) { return dtype == DType::kBf16 || dtype == DType::kF16; }

/// Launches the kernel within its scratch.
void launch(Emitter& emit, const AttentionShape& shape, const Kernel& kernel, int threads,
            ModuleId module) {
  const BufferId scratch = emit.buffer({cpu_attention_scratch(shape, kernel.dtype, threads),
                                        BufferRole::kTemporary, Stream::kCompute, false, module});
  emit.allocate(scratch);
  emit.launch(kernel);
  emit.free(scratch);
}

}  // namespace

AttentionBackend choose_cpu_attention(const AttentionShape& shape, const Attributes& attributes) {
  const bool one_width = shape.value_dim == 0 || shape.value_dim == shape.head_dim;
  return attributes.dropout > 0 || !one_width ? AttentionBackend::kMath : AttentionBackend::kFlash;
}

Bytes cpu_attention_scratch(const AttentionShape& shape, DType dtype, int threads) {
  const std::int64_t queries = query_split(shape.query_length);
  const std::int64_t block = queries * std::min(kKeySplit, shape.key_length);
  // Forward: scores, maxima, sums and the output of a block. Backward: scores and their gradient.
  const std::int64_t values =
      shape.backward ? 2 * block : block + 2 * queries + queries * shape.head_dim;
  const std::int64_t reduced = is_reduced(dtype) ? (shape.backward ? 2 * block : block) : 0;
  return Bytes(std::max(1, threads) * (values * kAccumulated + reduced * size_of(dtype)));
}

SavedBuffers emit_cpu_attention_forward(Emitter& emit, const AttentionShape& shape,
                                        const Kernel& base, int threads, ModuleId module) {
  const Bytes logarithms(shape.batch * shape.heads * shape.query_length * kAccumulated);
  const BufferId saved =
      emit.buffer({logarithms, BufferRole::kActivation, Stream::kCompute, false, module});
  emit.allocate(saved);
  launch(emit, shape, base, threads, module);
  return {saved};
}

void emit_cpu_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                 int threads, ModuleId module) {
  launch(emit, shape, base, threads, module);
}

}  // namespace stoker
