#include "work/describer.h"

#include <algorithm>

namespace stoker {
namespace {

bool is_floating(DType dtype) { return dtype <= DType::kF8 || dtype == DType::kC64; }

}  // namespace

Describer::Describer(const Step& step, const Operator& op, const Sizes& sizes)
    : step_(step),
      op_(op),
      sizes_(sizes),
      attributes_(step.attributes_of(op)),
      name_(step.name_of(op)) {}

bool Describer::reads(std::size_t input, KernelClass kernel_class) const {
  if (kernel_class == KernelClass::kFill) return false;
  const Operands operands = family().operands;
  // Out of place, `bernoulli` reads its probabilities.
  if (input == 0 && operands == Operands::kFirstIsWritten) return !in_place();
  if (input == 1 && operands == Operands::kSecondIsSizes) return false;
  const TensorRef& t = op_.inputs[input];
  return std::none_of(
      op_.inputs.begin(), op_.inputs.begin() + static_cast<std::ptrdiff_t>(input),
      [&](const TensorRef& o) { return o.storage == t.storage && o.type == t.type; });
}

/// The first floating operand decides; a `where` begins with a mask, an embedding ends with
/// indices.
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
