#include "lower/common/math_attention.h"

#include <variant>

namespace stoker {
namespace {

/// Emits buffers and kernels of one call of at::_scaled_dot_product_attention_math.
class MathAttention {
 public:
  MathAttention(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                const Attributes& attributes, ModuleId module)
      : emit_(emit), s_(shape), base_(base), attributes_(attributes), module_(module) {}

  /// Scales q and k, keeps both, the probabilities and, with dropout, the mask and the masked
  /// probabilities.
  SavedBuffers forward() {
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

  void backward() {
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

  Emitter& emit_;
  const AttentionShape& s_;
  const Kernel& base_;
  const Attributes& attributes_;
  ModuleId module_;
};

}  // namespace

SavedBuffers emit_math_attention_forward(Emitter& emit, const AttentionShape& shape,
                                         const Kernel& base, const Attributes& attributes,
                                         ModuleId module) {
  return MathAttention(emit, shape, base, attributes, module).forward();
}

void emit_math_attention_backward(Emitter& emit, const AttentionShape& shape, const Kernel& base,
                                  const Attributes& attributes, ModuleId module) {
  MathAttention(emit, shape, base, attributes, module).backward();
}

}  // namespace stoker
