#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// The repeated blocks of a model, in order of execution: the children of its longest lists of
/// like modules ("encoder.layers.0", ...; "layer1.0", ...). Empty when nothing repeats.
[[nodiscard]] std::vector<std::string> repeated_blocks(const Step& step);

/// The step with torch.utils.checkpoint around each of `modules` (names, "NAME.*", or "blocks"): of
/// each only inputs and outputs live until the backward, which runs its forward again first. A
/// module that does not occur is refused with the nearest name; nested names checkpoint once, at
/// the outer one.
[[nodiscard]] Result<Step> with_checkpointing(const Step& step,
                                              const std::vector<std::string>& modules);

}  // namespace stoker
