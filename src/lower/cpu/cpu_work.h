#pragma once

#include <vector>

#include "step/sizes.h"
#include "step/step.h"
#include "work/work.h"

namespace stoker {

/// What a CPU executes of an operator's device kernels: one call, but for a convolution's backward,
/// which is one for the input and one for the weight. Biases come with the call that they belong
/// to.
void join_for_cpu(const Step& step, const Operator& op, const Sizes& sizes,
                  std::vector<Work>& work);

/// Reads along another dimension than it writes (the copy of a transpose), or reduces across rows.
[[nodiscard]] bool crosses_rows(const Step& step, const Operator& op, const Sizes& sizes);

}  // namespace stoker
