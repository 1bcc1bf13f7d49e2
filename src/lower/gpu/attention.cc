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

/// Emits buffers and kernels of one attention call.
class AttentionEmitter {
 public:
  AttentionEmitter(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                   const Attributes& attributes, ModuleId module)
      : emit_(emit), s_(shape), base_(base), attributes_(attributes), module_(module) {}

  SavedBuffers forward() {
    SavedBuffers saved;
    const std::int64_t rows = s_.batch * s_.heads;
    if (s_.backend == AttentionBackend::kMath) return math_forward();
    const bool flash = s_.backend == AttentionBackend::kFlash;
    const std::int64_t lse =
        flash ? s_.query_length : round_up(s_.query_length, kEfficientLseAlign);
    saved.push_back(keep(rows * lse * 4, BufferRole::kActivation));
    if (attributes_.dropout > 0) {
      saved.push_back(keep(kRandomState.count(), BufferRole::kActivation));
      saved.push_back(keep(kRandomState.count(), BufferRole::kActivation));
    }
    emit_.launch(base_);
    return saved;
  }

  void backward() {
    if (s_.backend == AttentionBackend::kMath) return math_backward();
    const std::int64_t rows = s_.batch * s_.heads;
    std::vector<BufferId> temporaries;
    if (s_.backend == AttentionBackend::kFlash) {
      const std::int64_t queries = round_up(s_.query_length, kFlashRound);
      temporaries.push_back(keep(rows * queries * 4, BufferRole::kTemporary));
      temporaries.push_back(keep(rows * queries * round_up(s_.head_dim, kFlashHeadRound) * 4,
                                 BufferRole::kTemporary));
    } else {
      temporaries.push_back(keep(rows * s_.query_length * 4, BufferRole::kTemporary));
    }
    Kernel kernel = base_;
    kernel.launches = 3;  // row sums, the main kernel, conversion of the accumulated query gradient
    emit_.launch(kernel);
    for (const BufferId id : temporaries) emit_.free(id);
  }

 private:
  BufferId keep(std::int64_t bytes, BufferRole role) {
    const BufferId id = emit_.buffer({Bytes(bytes), role, Stream::kCompute, false, module_});
    emit_.allocate(id);
    return id;
  }

  std::int64_t element() const { return size_of(base_.dtype); }
  std::int64_t score_count() const { return s_.batch * s_.heads * s_.query_length * s_.key_length; }
  std::int64_t query_count() const { return s_.batch * s_.heads * s_.query_length * s_.head_dim; }
  std::int64_t key_count() const { return s_.batch * s_.heads * s_.key_length * s_.head_dim; }

  /// Which factor is read transposed decides the kernel.
  void product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
    Kernel kernel = base_;
    kernel.kernel_class = KernelClass::kGemm;
    const std::int64_t rows = s_.batch * s_.heads;
    kernel.shape = GemmShape{rows, m, n, k, transpose_a, transpose_b};
    kernel.flops = Flops(2.0 * static_cast<double>(rows) * static_cast<double>(m) *
                         static_cast<double>(n) * static_cast<double>(k));
    kernel.read = Bytes(rows * (m * k + k * n) * element());
    kernel.written = Bytes(rows * m * n * element());
    kernel.elements = rows * m * n;
    name(kernel, "bmm");
    emit_.launch(kernel);
  }

  /// What a CPU runs is told by the function; elsewhere the attention has none.
  void name(Kernel& kernel, const char* function) {
    if (base_.function != 0) kernel.function = emit_.function(function);
  }

  void pointwise(KernelClass kernel_class, std::int64_t count, std::int64_t read,
                 std::int64_t written, const char* function = "mul") {
    Kernel kernel = base_;
    kernel.kernel_class = kernel_class;
    kernel.unit = MathUnit::kFp32;
    kernel.shape = std::monostate{};
    if (kernel_class == KernelClass::kSoftmax)
      kernel.shape = RowShape{count / s_.key_length, s_.key_length};
    kernel.flops = Flops(static_cast<double>(count));
    kernel.read = Bytes(read);
    kernel.written = Bytes(written);
    kernel.elements = count;
    const bool rows = kernel_class == KernelClass::kSoftmax;
    name(kernel, !rows ? function : s_.backward ? "_softmax_backward_data" : "_softmax");
    emit_.launch(kernel);
  }

  /// at::_scaled_dot_product_attention_math: scales q and k, keeps both, the probabilities and,
  /// with dropout, the mask and the masked probabilities.
  SavedBuffers math_forward() {
    SavedBuffers saved;
    const std::int64_t e = element();
    saved.push_back(keep(query_count() * e, BufferRole::kActivation));
    pointwise(KernelClass::kElementwise, query_count(), query_count() * e, query_count() * e);
    saved.push_back(keep(key_count() * e, BufferRole::kActivation));
    pointwise(KernelClass::kElementwise, key_count(), key_count() * e, key_count() * e);
    const BufferId scores = keep(score_count() * e, BufferRole::kTemporary);
    product(s_.query_length, s_.key_length, s_.head_dim, false, true);
    if (attributes_.causal || attributes_.mask_kind != "none") {
      pointwise(KernelClass::kElementwise, score_count(), score_count() * e, score_count() * e);
    }
    saved.push_back(keep(score_count() * e, BufferRole::kActivation));
    pointwise(KernelClass::kSoftmax, score_count(), score_count() * e, score_count() * e);
    emit_.free(scores);
    if (attributes_.dropout > 0) {
      saved.push_back(keep(score_count() * e, BufferRole::kActivation));
      saved.push_back(keep(score_count(), BufferRole::kActivation));
      pointwise(KernelClass::kElementwise, score_count(), score_count() * e,
                score_count() * (e + 1), "bernoulli_");
    }
    product(s_.query_length, s_.head_dim, s_.key_length, false, false);
    return saved;
  }

  void math_backward() {
    const std::int64_t e = element();
    const BufferId gradient = keep(score_count() * e, BufferRole::kTemporary);
    product(s_.query_length, s_.key_length, s_.head_dim, false, true);  // grad of the probabilities
    product(s_.key_length, s_.head_dim, s_.query_length, true, false);  // grad of v
    if (attributes_.dropout > 0) {
      pointwise(KernelClass::kElementwise, score_count(), score_count() * (e + 1),
                score_count() * e);
    }
    const BufferId scores = keep(score_count() * e, BufferRole::kTemporary);
    // Product with the probabilities, then the rows (ATen/native/cuda/SoftMax.cu).
    pointwise(KernelClass::kElementwise, score_count(), 2 * score_count() * e, score_count() * e);
    pointwise(KernelClass::kSoftmax, score_count(), 2 * score_count() * e, score_count() * e);
    emit_.free(gradient);
    product(s_.query_length, s_.head_dim, s_.key_length, false, false);  // grad of q
    product(s_.key_length, s_.head_dim, s_.query_length, true, false);   // grad of k
    emit_.free(scores);
    pointwise(KernelClass::kElementwise, query_count(), query_count() * e, query_count() * e);
    pointwise(KernelClass::kElementwise, key_count(), key_count() * e, key_count() * e);
  }

  Emitter& emit_;
  const AttentionShape& s_;
  const Kernel& base_;
  const Attributes& attributes_;
  ModuleId module_;
};

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

SavedBuffers emit_attention_forward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                    const Attributes& attributes, ModuleId module) {
  return AttentionEmitter(emit, shape, base, attributes, module).forward();
}

void emit_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                             const Attributes& attributes, ModuleId module) {
  AttentionEmitter(emit, shape, base, attributes, module).backward();
}

}  // namespace stoker
