#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "input/probe/sample_cost.h"
#include "step/step.h"

namespace stoker {

/// Side of the images that a step takes, [batch, 1 | 3 | 4, height, width] of floats or bytes; 0
/// when its first input is none.
[[nodiscard]] std::int64_t image_side(const Step& step);

/// What the loader hands over for one sample.
[[nodiscard]] Result<OutputShape> loader_output(
    const Step& step, const std::map<std::string, std::int64_t>& dimensions);

/// What a report counts: "img", "clip", "seq", "sample".
[[nodiscard]] std::string sample_word(const Step& step);

}  // namespace stoker
