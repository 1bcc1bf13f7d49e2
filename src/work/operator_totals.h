#pragma once

#include <string_view>
#include <vector>

#include "step/sizes.h"
#include "step/step.h"
#include "work/work.h"

namespace stoker {

/// What the kernels of one class that one operator launches have to do in one pass of a step: a
/// convolution with a bias has two entries.
struct OperatorTotal {
  std::string_view name;  ///< of the step, with its overload
  bool backward = false;  ///< in the backward pass; else forward, loss or loading
  KernelClass kernel_class = KernelClass::kUncosted;
  std::int64_t kernels = 0;
  Flops flops;
  Bytes read, written;
};

/// Every operator of the step that launches kernels, most FLOPs first, then most bytes.
[[nodiscard]] std::vector<OperatorTotal> operator_totals(const Step& step, const Sizes& sizes);

}  // namespace stoker
