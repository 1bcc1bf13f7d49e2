#pragma once

#include <cstdint>
#include <vector>

#include "step/step.h"

namespace stoker {

/// Gradients of a step's backward that autograd adds in place, so that their sum lies where the
/// first summand did.
struct GradientSums {
  std::vector<bool> in_place;          ///< by storage: it is such a sum
  std::vector<std::uint32_t> lies_in;  ///< by storage: the last sum of its memory, or itself
};

/// It does not depend on the batch size.
[[nodiscard]] GradientSums find_gradient_sums(const Step& step);

}  // namespace stoker
