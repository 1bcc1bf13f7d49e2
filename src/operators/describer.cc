#include "operators/describer.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

/// Kernels whose first argument is only written: the destination of a copy, what a random number
/// generator fills.
constexpr auto kWritesFirst = std::to_array<std::string_view>(
    {"bernoulli", "cauchy", "copy", "exponential", "geometric", "log_normal", "random"});

/// Backward operators whose second argument, the input of the forward, gives sizes only
/// (aten/src/ATen/native/cuda: AveragePool2d.cu, AveragePool3d.cu, AdaptiveAveragePooling*.cu,
/// DilatedMaxPool*.cu, AdaptiveMaxPooling*.cu, ReflectionPad.cu, ReplicationPadding.cu).
constexpr auto kSizesOfSecond = std::to_array<std::string_view>(
    {"_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
     "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool2d_backward",
     "avg_pool3d_backward", "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward",
     "reflection_pad1d_backward", "reflection_pad2d_backward", "reflection_pad3d_backward",
     "replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward"});

template <std::size_t N>
bool has(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool is_floating(DType dtype) { return dtype <= DType::kF8 || dtype == DType::kC64; }

}  // namespace

std::string_view stem_of(std::string_view name) {
  if (const auto colons = name.find("::"); colons != std::string_view::npos)
    name.remove_prefix(colons + 2);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

Describer::Describer(const Step& step, const Operator& op, const Sizes& sizes)
    : step_(step),
      op_(op),
      sizes_(sizes),
      attributes_(step.attributes_of(op)),
      stem_(stem_of(step.operator_name(op))) {}

bool Describer::is_backward() const { return stem_.find("_backward") != std::string_view::npos; }

bool Describer::reads(std::size_t input, KernelClass kernel_class) const {
  if (kernel_class == KernelClass::kFill) return false;
  // Out of place, `bernoulli` reads its probabilities.
  if (input == 0 && has(kWritesFirst, stem_)) return !in_place();
  if (input == 1 && has(kSizesOfSecond, stem_)) return false;
  const TensorRef& t = op_.inputs[input];
  return std::none_of(
      op_.inputs.begin(), op_.inputs.begin() + static_cast<std::ptrdiff_t>(input),
      [&](const TensorRef& o) { return o.storage == t.storage && o.type == t.type; });
}

/// The first floating operand decides; a `where` begins with a mask, an embedding ends with indices.
DType Describer::arithmetic() const {
  for (const auto* list : {&op_.inputs, &op_.outputs}) {
    for (const TensorRef& t : *list) {
      if (is_floating(dtype(t))) return dtype(t);
    }
  }
  if (!op_.inputs.empty()) return dtype(op_.inputs[0]);
  return op_.outputs.empty() ? DType::kF32 : dtype(op_.outputs[0]);
}

Work Describer::base(KernelClass kernel_class) const {
  Work work;
  work.kernel_class = kernel_class;
  for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
    if (!reads(i, kernel_class)) continue;
    work.read += bytes(op_.inputs[i]);
    work.elements = std::max(work.elements, elements(op_.inputs[i]));
  }
  for (const TensorRef& out : op_.outputs) {
    work.written += bytes(out);
    work.elements = std::max(work.elements, elements(out));
  }
  work.dtype = arithmetic();
  return work;
}

bool Describer::transposed(const TensorRef& t) const {
  const TensorType& type = step_.types[index(t.type)];
  if (type.layout != Layout::kPermuted || type.order.size() < 2) return false;
  return type.order.back() == type.order.size() - 2;
}

bool Describer::channels_last(const TensorRef& t) const {
  const TensorType& type = step_.types[index(t.type)];
  return type.layout == Layout::kPermuted && type.order.size() >= 4 && type.order.back() == 1;
}

bool Describer::in_place() const {
  return !op_.inputs.empty() && !op_.outputs.empty() &&
         op_.inputs[0].storage == op_.outputs[0].storage;
}

}  // namespace stoker
