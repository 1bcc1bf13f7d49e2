#pragma once

#include <span>

#include "work/work.h"

/// What the rules that turn an operator into work share. Internal to src/work.
namespace stoker {

/// One operator with the sizes of its tensors.
class Describer {
 public:
  Describer(const Step& step, const Operator& op, const Sizes& sizes);

  /// Bytes in and out, each storage and tensor once, without the inputs that the kernel takes for
  /// their sizes only; the largest tensor; the dtype of the arithmetic.
  [[nodiscard]] Work base(KernelClass kernel_class) const;

  [[nodiscard]] const std::vector<TensorRef>& inputs() const { return op_.inputs; }
  [[nodiscard]] const std::vector<TensorRef>& outputs() const { return op_.outputs; }
  [[nodiscard]] const Attributes& attributes() const { return attributes_; }
  [[nodiscard]] const OperatorFamily& family() const { return name_.family(); }
  [[nodiscard]] WorkRule rule() const { return family().rule; }
  [[nodiscard]] bool is_backward() const { return name_.backward(); }

  [[nodiscard]] DType dtype(const TensorRef& t) const { return step_.types[index(t.type)].dtype; }
  [[nodiscard]] std::span<const std::int64_t> shape(const TensorRef& t) const {
    return sizes_.shape(t.type);
  }
  /// What reading or writing it once moves: a broadcast view no more than its storage holds.
  [[nodiscard]] Bytes bytes(const TensorRef& t) const { return sizes_.touched(t); }
  [[nodiscard]] std::int64_t elements(const TensorRef& t) const { return sizes_.elements(t.type); }
  /// True for a matrix (the last two dimensions) that lies column-major in memory.
  [[nodiscard]] bool transposed(const TensorRef& t) const;
  [[nodiscard]] bool channels_last(const TensorRef& t) const;
  /// The first output lies in the first input's storage.
  [[nodiscard]] bool in_place() const;

 private:
  [[nodiscard]] bool reads(std::size_t input, KernelClass kernel_class) const;
  [[nodiscard]] DType arithmetic() const;

  const Step& step_;
  const Operator& op_;
  const Sizes& sizes_;
  const Attributes& attributes_;
  const OperatorName& name_;
};

/// Rules of operators with shapes of their own; each appends one Work for each device kernel (or
/// group of kernels of one library call).
void append_gemm(const Describer& d, std::vector<Work>& into);
void append_attention(const Describer& d, std::vector<Work>& into);
void append_rnn(const Describer& d, std::vector<Work>& into);
void append_convolution(const Describer& d, std::vector<Work>& into);
void append_convolution_backward(const Describer& d, std::vector<Work>& into);
void append_collective(const Describer& d, std::vector<Work>& into);
/// Everything that is bound by the bytes it moves.
void append_memory_bound(const Describer& d, std::vector<Work>& into);

}  // namespace stoker
