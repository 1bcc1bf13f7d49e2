#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "operators/kernel_class.h"
#include "operators/shapes.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// What one device kernel of an operator has to do, derived from shapes alone: no machine in it.
struct Work {
  KernelClass kernel_class = KernelClass::kUncosted;
  DType dtype = DType::kF32;  ///< of the main operand
  Flops flops;
  Bytes read, written;         ///< each tensor once
  std::int64_t elements = 0;   ///< of the largest tensor touched
  std::uint16_t launches = 1;  ///< device kernels behind it
  KernelShape shape;
};

/// Appends the work of one operator: none for allocation alone, two or three for a convolution's
/// backward.
void append_work(const Step& step, const Operator& op, const Sizes& sizes, std::vector<Work>& into);

/// Totals of a step, by phase: what `stoker models` and tests ask for.
struct StepTotals {
  Flops forward, backward;
  Bytes parameters, gradients, inputs;
  /// Transient bytes alive when the backward begins: what the forward leaves for it.
  Bytes activations;
};
[[nodiscard]] StepTotals totals_of(const Step& step, const Sizes& sizes);

}  // namespace stoker
