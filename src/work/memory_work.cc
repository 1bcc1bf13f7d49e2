#include <algorithm>
#include <cmath>

#include "work/describer.h"

namespace stoker {
namespace {

/// A radix-2 butterfly of complex numbers: one product, two sums, for n/2 log2 n of them.
constexpr double kFourierFlops = 5;
/// Radix sort works off 8 bits of the key in a pass (CUB, DeviceRadixSort); rows up to this length
/// are sorted in one pass by one block (aten/src/ATen/native/cuda/Sort.cpp, should_use_small_sort).
constexpr std::int64_t kSortBitsBytes = 1, kSmallSort = 4096;
/// Kernels of a sort of indices with its preparation and clean-up: a prior.
constexpr std::uint16_t kSortLaunches = 8;
/// An embedding's gradient sorts its indices above this many (aten/src/ATen/native/cuda/
/// Embedding.cu, embedding_dense_backward_cuda).
constexpr std::int64_t kUnsortedEmbedding = 3072;
constexpr std::int64_t kIndexBytes = 8;

Bytes least(Bytes a, Bytes b) { return std::min(a, b); }

double element_flops(KernelClass kernel_class) { return row_of(kernel_class).element_flops; }

/// Rows of a softmax (over the last dimension, where nearly all are) or of a layer norm.
KernelShape row_shape(const Describer& d) {
  const bool layer_norm = d.family().kernel_class == KernelClass::kNormalization;
  if (d.inputs().empty()) return {};
  const std::int64_t elements = d.elements(d.inputs()[0]);
  const auto shape = d.shape(d.inputs()[0]);
  std::int64_t width = shape.empty() ? 1 : shape.back();
  // The statistics have one element a row, whatever the norm reduces over: the second output
  // forward, the third input backward.
  const auto& list = d.is_backward() ? d.inputs() : d.outputs();
  const std::size_t statistics = d.is_backward() ? 2 : 1;
  if (layer_norm && list.size() > statistics) {
    const std::int64_t rows = d.elements(list[statistics]);
    if (rows > 0 && elements % rows == 0) width = elements / rows;
  }
  if (width <= 0) return {};
  return RowShape{elements / width, width};
}

Work zeros_of(const Describer& d, const TensorRef& t) {
  Work fill = d.base(KernelClass::kFill);
  fill.read = Bytes(0);
  fill.written = d.bytes(t);
  fill.elements = d.elements(t);
  return fill;
}

/// The negative log-likelihood picks one element a row: forward it reads those alone, backward it
/// writes the whole gradient and reads none of the scores.
void append_nll(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kReduction);
  const auto& in = d.inputs();
  const bool backward = d.is_backward();
  const std::size_t scores = backward ? 1 : 0;
  if (in.size() > scores + 1) {
    const std::int64_t rows = d.elements(in[scores + 1]);
    const std::int64_t picked = backward ? 0 : rows * size_of(d.dtype(in[scores]));
    work.read = Bytes(picked) + d.bytes(in[scores + 1]);
    if (!backward) work.elements = rows;
  }
  work.flops = Flops(static_cast<double>(work.elements));
  into.push_back(work);
}

/// Gathers touch the rows that are asked for, not the whole table.
void append_gather(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kGather);
  if (!d.inputs().empty() && !d.outputs().empty()) {
    const Bytes table = d.bytes(d.inputs()[0]);
    work.read += least(table, d.bytes(d.outputs()[0])) - table;
  }
  into.push_back(work);
}

/// Writes `source` (or one value for each index) into a tensor that stays as it is elsewhere; out
/// of place, that is copied first.
void append_scatter(const Describer& d, std::vector<Work>& into) {
  const auto& in = d.inputs();
  const auto& out = d.outputs();
  if (in.size() < 2 || out.empty()) {
    into.push_back(d.base(KernelClass::kGather));
    return;
  }
  const TensorRef& self = in[0];
  if (!d.in_place()) {
    Work copy = d.base(KernelClass::kCopy);
    copy.read = d.bytes(self);
    copy.written = d.bytes(out[0]);
    copy.elements = d.elements(out[0]);
    into.push_back(copy);
  }
  Work work = d.base(KernelClass::kGather);
  const TensorRef& last = in.back();
  const bool has_source = d.dtype(last) == d.dtype(self);
  work.elements = d.elements(last);
  work.read = Bytes(0);
  for (std::size_t i = 1; i < in.size(); ++i) work.read += d.bytes(in[i]);
  const Bytes moved = has_source ? d.bytes(last) : Bytes(d.elements(last) * size_of(d.dtype(self)));
  work.written = least(moved, d.bytes(self));
  // Sums read what they add to. An index_put of the backward adds, and sorts its indices to do so
  // (aten/src/ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel).
  const bool put = d.rule() == WorkRule::kSortedScatter;
  const bool adds = put || d.rule() == WorkRule::kScatterAdd;
  if (adds) work.read += work.written;
  if (put) work.launches = kSortLaunches;
  into.push_back(work);
}

/// Zeros in the whole table, then the sum of each index's rows. Many indices are sorted first.
void append_embedding_backward(const Describer& d, std::vector<Work>& into) {
  const auto& in = d.inputs();
  if (in.size() < 2 || d.outputs().empty()) {
    into.push_back(d.base(KernelClass::kGather));
    return;
  }
  const TensorRef& table = d.outputs()[0];
  into.push_back(zeros_of(d, table));
  Work work = d.base(KernelClass::kGather);
  work.elements = d.elements(in[0]);
  work.written = least(d.bytes(table), d.bytes(in[0]));
  const std::int64_t indices = d.elements(in[1]);
  if (indices > kUnsortedEmbedding) {
    // Key and position, read and written in each pass over the 4 bytes that a row number takes.
    const Bytes sorted(indices * 2 * kIndexBytes * (4 / kSortBitsBytes));
    work.read += sorted;
    work.written += sorted;
    work.launches = kSortLaunches;
  }
  into.push_back(work);
}

/// Moments first, then one kernel that applies them; backward likewise (aten/src/ATen/native/cuda/
/// group_norm_kernel.cu). Between the two lies a small kernel for each group's coefficients.
void append_two_pass_norm(const Describer& d, std::vector<Work>& into) {
  Work apply = d.base(KernelClass::kNormalization);
  if (apply.elements == 0) return;
  apply.flops =
      Flops(element_flops(KernelClass::kNormalization) / 2 * static_cast<double>(apply.elements));
  apply.launches = d.is_backward() ? 3 : 2;
  Work moments = apply;
  moments.written = Bytes(0);
  moments.launches = 1;
  into.push_back(moments);
  into.push_back(apply);
}

/// Every pair of rows is compared along the whole width: subtract, raise to a power, add.
void append_distances(const Describer& d, std::vector<Work>& into) {
  constexpr double kFlops = 3;
  Work work = d.base(KernelClass::kElementwise);
  const auto& pairs = d.is_backward() ? d.inputs() : d.outputs();
  const std::size_t rows = d.is_backward() ? 1 : 0;
  if (work.elements == 0 || pairs.empty() || d.inputs().size() <= rows) return;
  const auto shape = d.shape(d.inputs()[rows]);
  const double width = shape.empty() ? 1 : static_cast<double>(shape.back());
  work.flops = Flops(kFlops * static_cast<double>(d.elements(pairs[0])) * width);
  into.push_back(work);
}

/// One pass over the tensor for each transformed dimension.
void append_fourier(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kElementwise);
  if (work.elements == 0 || d.inputs().empty()) return;
  const auto shape = d.shape(d.inputs()[0]);
  for (const std::int32_t dim : d.attributes().dim) {
    const std::int64_t i = dim < 0 ? dim + static_cast<std::int64_t>(shape.size()) : dim;
    if (i < 0 || i >= static_cast<std::int64_t>(shape.size())) continue;
    const auto points = static_cast<double>(shape[static_cast<std::size_t>(i)]);
    work.flops = Flops(kFourierFlops * static_cast<double>(work.elements) *
                       std::log2(std::max(2.0, points)));
    into.push_back(work);
  }
  if (d.attributes().dim.empty()) into.push_back(work);
}

void append_sort(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kReduction);
  if (work.elements == 0 || d.inputs().empty()) return;
  const auto shape = d.shape(d.inputs()[0]);
  work.flops = Flops(static_cast<double>(work.elements));
  if (!shape.empty() && shape.back() > kSmallSort) {
    const std::int64_t passes = size_of(d.dtype(d.inputs()[0])) / kSortBitsBytes;
    const Bytes pass(work.elements * (size_of(d.dtype(d.inputs()[0])) + kIndexBytes));
    work.read += Bytes(pass.count() * passes);
    work.written += Bytes(pass.count() * passes);
    work.launches = kSortLaunches;
  }
  into.push_back(work);
}

/// The gradient of a softmax is multiplied by its output into a temporary before the rows are
/// summed (aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out): two kernels that move
/// as many bytes each. Operators measured on six GPUs take twice the time of one.
void append_softmax_backward(const Describer& d, std::vector<Work>& into) {
  Work rows = d.base(KernelClass::kSoftmax);
  if (rows.elements == 0) return;
  Work product = rows;
  product.kernel_class = KernelClass::kElementwise;
  product.flops = Flops(static_cast<double>(rows.elements));
  rows.flops =
      Flops((element_flops(KernelClass::kSoftmax) - 1) * static_cast<double>(rows.elements));
  rows.shape = row_shape(d);
  into.push_back(product);
  into.push_back(rows);
}

/// A kernel that its user registered: the sizes of the first two inputs, which are none, are its
/// FLOPs and the bytes that it moves (docs/reference/step-file.md).
void append_custom(const Describer& d, std::vector<Work>& into) {
  const auto& in = d.inputs();
  if (in.size() < 2) return;
  Work work = d.base(d.family().kernel_class);
  work.flops = Flops(static_cast<double>(d.elements(in[0])));
  work.read = Bytes(d.elements(in[1]));
  work.written = Bytes(0);
  if (!d.outputs().empty()) {
    work.dtype = d.dtype(d.outputs()[0]);
    work.elements = d.elements(d.outputs()[0]);
    const Bytes out = least(d.bytes(d.outputs()[0]), work.read);
    work.written = out;
    work.read = work.read - out;
  }
  into.push_back(work);
}

void append_plain(const Describer& d, std::vector<Work>& into) {
  const OperatorFamily& family = d.family();
  if (family.name.starts_with("custom_")) return append_custom(d, into);
  Work work = d.base(family.kernel_class);
  if (work.elements == 0) return;  // nothing to do on an empty tensor
  work.flops = Flops(element_flops(family.kernel_class) * static_cast<double>(work.elements));
  if (family.rule == WorkRule::kRows) work.shape = row_shape(d);
  work.launches = family.launches;
  if (!d.outputs().empty()) {
    const TensorRef& out = d.outputs()[0];
    if (family.rule == WorkRule::kPartOfZeros) {
      into.push_back(zeros_of(d, out));
      work.written = least(work.read, d.bytes(out));
    } else if (family.rule == WorkRule::kAllOfZeros) {
      into.push_back(zeros_of(d, out));
    }
  }
  into.push_back(work);
}

}  // namespace

void append_memory_bound(const Describer& d, std::vector<Work>& into) {
  switch (d.rule()) {
    case WorkRule::kPickedRows:
      return append_nll(d, into);
    case WorkRule::kScatter:
    case WorkRule::kScatterAdd:
    case WorkRule::kSortedScatter:
      return append_scatter(d, into);
    case WorkRule::kGather:
      return append_gather(d, into);
    case WorkRule::kSort:
      return append_sort(d, into);
    case WorkRule::kFourier:
      return append_fourier(d, into);
    case WorkRule::kEmbeddingBackward:
      return append_embedding_backward(d, into);
    case WorkRule::kMoments:
      return append_two_pass_norm(d, into);
    case WorkRule::kTrainedMoments:
      return d.attributes().train ? append_two_pass_norm(d, into) : append_plain(d, into);
    case WorkRule::kDistances:
      return append_distances(d, into);
    case WorkRule::kSoftmaxBackward:
      return append_softmax_backward(d, into);
    default:
      return append_plain(d, into);
  }
}

/// `groups` of a collective's attributes is the number of ranks.
void append_collective(const Describer& d, std::vector<Work>& into) {
  Work work = d.base(KernelClass::kCollective);
  if (work.elements == 0) return;
  work.shape = CollectiveShape{.kind = d.family().collective, .ranks = d.attributes().groups};
  into.push_back(work);
}

}  // namespace stoker
