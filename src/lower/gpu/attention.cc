#include "lower/gpu/attention.h"

#include <algorithm>

namespace stoker {
namespace {

constexpr std::int64_t kFlashMaxHeadDim = 256;   // sdp_utils.cpp, check_head_dim_size_flash
constexpr std::int64_t kEfficientAlignHalf = 8;  // 128-bit loads of 16-bit elements
constexpr std::int64_t kEfficientAlignSingle = 4;
constexpr std::int64_t kEfficientLseAlign = 32;  // mem_eff_attention/kernel_forward.h, kAlignLSE
constexpr std::int64_t kFlashRound = 128;        // flash_api.cpp rounds sequence lengths to 128
constexpr std::int64_t kFlashHeadRound = 32;     // and head sizes to 32
constexpr Bytes kRandomState{16};                // philox seed and offset, two 64-bit integers

/// sdp_utils.cpp, minimum_gemm_alignment: what tensor cores load at once; without them nothing.
std::int64_t efficient_alignment(bool half, const Gpu& gpu) {
  const bool tensor_cores =
      gpu.vendor == Vendor::kAmd || gpu.compute_capability >= (half ? 70 : 80);
  if (!tensor_cores) return 1;
  return half ? kEfficientAlignHalf : kEfficientAlignSingle;
}

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

BufferId allocate(Emitter& emit, std::int64_t bytes, BufferRole role, ModuleId module) {
  const BufferId id = emit.buffer({Bytes(bytes), role, Stream::kCompute, false, module});
  emit.allocate(id);
  return id;
}

}  // namespace

AttentionBackend choose_attention(const AttentionShape& shape, DType dtype,
                                  const Attributes& attributes, const Gpu& gpu) {
  const bool half = dtype == DType::kF16 || dtype == DType::kBf16;
  const bool masked = attributes.mask_kind != "none";
  const bool modern = gpu.vendor == Vendor::kAmd || gpu.compute_capability >= 80;
  // check_flash_causal_non_square_seqlens, check_head_dim_size_flash
  const bool square = !shape.causal || shape.query_length == shape.key_length;
  const bool one_width = shape.value_dim == 0 || shape.value_dim == shape.head_dim;
  if (half && modern && !masked && square && one_width && shape.head_dim <= kFlashMaxHeadDim)
    return AttentionBackend::kFlash;
  constexpr int kEfficientMinimum = 50;  // sdp_utils.cpp, check_mem_efficient_hardware_support
  const std::int64_t align = efficient_alignment(half, gpu);
  const bool bf16_without_units =
      dtype == DType::kBf16 && gpu.compute_capability < 80 && gpu.vendor == Vendor::kNvidia;
  const bool supported = gpu.vendor == Vendor::kAmd || gpu.compute_capability >= kEfficientMinimum;
  const bool aligned = shape.head_dim % align == 0 && shape.value_dim % align == 0;
  if (supported && !bf16_without_units && aligned) return AttentionBackend::kMemoryEfficient;
  return AttentionBackend::kMath;
}

SavedBuffers emit_fused_attention_forward(Emitter& emit, const AttentionShape& shape,
                                          const Kernel& base, const Attributes& attributes,
                                          ModuleId module) {
  const std::int64_t rows = shape.batch * shape.heads;
  const bool flash = shape.backend == AttentionBackend::kFlash;
  const std::int64_t logarithms =
      flash ? shape.query_length : round_up(shape.query_length, kEfficientLseAlign);
  SavedBuffers saved{allocate(emit, rows * logarithms * 4, BufferRole::kActivation, module)};
  if (attributes.dropout > 0) {
    for (int i = 0; i < 2; ++i)
      saved.push_back(allocate(emit, kRandomState.count(), BufferRole::kActivation, module));
  }
  emit.launch(base);
  return saved;
}

void emit_fused_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                   ModuleId module) {
  const std::int64_t rows = shape.batch * shape.heads;
  std::vector<BufferId> temporaries;
  const auto temporary = [&](std::int64_t elements) {
    temporaries.push_back(allocate(emit, elements * 4, BufferRole::kTemporary, module));
  };
  if (shape.backend == AttentionBackend::kFlash) {
    const std::int64_t queries = round_up(shape.query_length, kFlashRound);
    temporary(rows * queries);
    temporary(rows * queries * round_up(shape.head_dim, kFlashHeadRound));
  } else {
    temporary(rows * shape.query_length);
  }
  Kernel kernel = base;
  kernel.launches = 3;  // row sums, the main kernel, conversion of the accumulated query gradient
  emit.launch(kernel);
  for (const BufferId id : temporaries) emit.free(id);
}

}  // namespace stoker
