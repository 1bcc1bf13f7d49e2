#include "lower/cpu/cpu_work.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace stoker {
namespace {

/// The fastest dimension in memory; none for scalars and for views with gaps, whose order is not
/// known.
std::optional<std::size_t> innermost(const TensorType& type) {
  if (type.shape.empty() || type.layout == Layout::kStrided) return std::nullopt;
  if (type.layout == Layout::kPermuted && !type.order.empty()) return type.order.back();
  return type.shape.size() - 1;
}

/// Sums up to one call. The bytes that kernels of a GPU hand to each other through memory stay in
/// caches or registers, or are read twice here too; which, is for the time model to know.
void join_all(std::vector<Work>& work) {
  Work& first = work.front();
  for (std::size_t i = 1; i < work.size(); ++i) {
    first.flops += work[i].flops;
    first.read += work[i].read;
    first.written += work[i].written;
    first.elements = std::max(first.elements, work[i].elements);
    if (std::holds_alternative<std::monostate>(first.shape)) first.shape = work[i].shape;
  }
  first.kernel_class = work.back().kernel_class;
  work.resize(1);
}

/// oneDNN adds the bias while it writes, and sums its gradient while it makes the weight's
/// (aten/src/ATen/native/mkldnn/Conv.cpp).
void join_convolution(std::vector<Work>& work) {
  std::vector<Work> calls;
  for (const Work& w : work) {
    if (std::holds_alternative<ConvolutionShape>(w.shape)) calls.push_back(w);
  }
  if (!calls.empty()) work = std::move(calls);
}

std::int64_t sum_of_windows(const Step& step, const Operator& op, const Sizes& sizes,
                            bool backward) {
  const std::vector<TensorRef>& list = backward ? op.inputs : op.outputs;
  if (list.empty()) return 0;
  const std::int64_t windows = sizes.elements(list[0].type);
  std::int64_t each = 1;
  for (const std::int32_t side : step.attributes_of(op).kernel) each *= std::max(1, side);
  return windows * each;
}

/// A recurrent layer as oneDNN runs it whole: input, the two matrices, the two biases, states
/// (native/mkldnn/RNN.cpp). The backward makes the gradients of inputs and of weights.
Work recurrent_work(const Step& step, const Operator& op, const Sizes& sizes, Work work,
                    bool backward) {
  constexpr std::size_t kHidden = 2;  ///< position of the matrix of the state
  const auto input = sizes.shape(op.inputs[0].type);
  const auto hidden = sizes.shape(op.inputs[kHidden].type);
  if (input.size() != 3 || hidden.size() != 2) return work;
  const std::int64_t rows = input[0] * input[1];
  const std::int64_t weights =
      sizes.elements(op.inputs[1].type) + sizes.elements(op.inputs[kHidden].type);
  const std::string& mode = step.attributes_of(op).rnn_mode;
  work.kernel_class = KernelClass::kRnn;
  work.flops = Flops((backward ? 4.0 : 2.0) * static_cast<double>(rows * weights));
  RnnShape shape;
  shape.batch = input[1], shape.length = input[0], shape.input = input[2], shape.hidden = hidden[1];
  shape.gates = mode == "gru" ? 3 : 4;
  shape.backward = backward;
  work.shape = shape;
  return work;
}

}  // namespace

void join_for_cpu(const Step& step, const Operator& op, const Sizes& sizes,
                  std::vector<Work>& work) {
  if (work.empty()) return;
  const OperatorFamily& family = step.family_of(op);
  const bool backward = step.name_of(op).backward();
  for (Work& w : work) w.launches = 1;
  if (family.rule == WorkRule::kOneDnnRecurrent && op.inputs.size() > 2) {
    work = {recurrent_work(step, op, sizes, work.front(), backward)};
    return;
  }
  if (family.kernel_class == KernelClass::kPooling) {
    join_all(work);
    work[0].flops = Flops(static_cast<double>(sum_of_windows(step, op, sizes, backward)));
    return;
  }
  if (std::ranges::any_of(
          work, [](const Work& w) { return std::holds_alternative<ConvolutionShape>(w.shape); })) {
    return join_convolution(work);
  }
  // Both passes over a row happen while it is in the cache (native/cpu/SoftMaxKernel.cpp).
  if (family.rule == WorkRule::kSoftmaxBackward && work.size() == 2) {
    work.erase(work.begin());
    return;
  }
  join_all(work);
}

bool crosses_rows(const Step& step, const Operator& op, const Sizes& sizes) {
  if (op.inputs.empty() || op.outputs.empty()) return false;
  const KernelClass kernel_class = step.family_of(op).kernel_class;
  if (kernel_class == KernelClass::kReduction || kernel_class == KernelClass::kSoftmax) {
    const auto shape = sizes.shape(op.inputs[0].type);
    const auto inner = innermost(step.types[index(op.inputs[0].type)]);
    const std::vector<std::int32_t>& dims = step.attributes_of(op).dim;
    if (!inner || dims.empty() || shape[*inner] <= 1) return false;
    return std::ranges::none_of(dims, [&](std::int32_t dim) {
      const auto rank = static_cast<std::int64_t>(shape.size());
      return (dim < 0 ? dim + rank : dim) == static_cast<std::int64_t>(*inner);
    });
  }
  const TensorRef& out = op.outputs[0];
  const auto written = innermost(step.types[index(out.type)]);
  if (!written) return false;
  const std::int64_t elements = sizes.elements(out.type);
  for (const TensorRef& in : op.inputs) {
    if (sizes.elements(in.type) != elements) continue;
    const auto read = innermost(step.types[index(in.type)]);
    if (!read || sizes.shape(in.type).size() != sizes.shape(out.type).size()) continue;
    if (*read != *written && sizes.shape(in.type)[*read] > 1) return true;
  }
  return false;
}

}  // namespace stoker
