#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "step/step.h"

namespace stoker {

/// The repeated blocks of a model, in order of execution: the outermost modules that are numbered
/// ("encoder.layers.0", ...; "layer1.0", ...), have at least one like them beside them, are more
/// than a layer (two matrix products or more) and hold no longer list of such modules. Empty when
/// nothing repeats.
[[nodiscard]] std::vector<std::string> repeated_blocks(const Step& step);

/// The step with torch.utils.checkpoint(use_reentrant=False) around each of `modules` (names,
/// "NAME.*" for the children, or "blocks"). Of each call only inputs and outputs live until the
/// backward. Before the first node of its backward that needs a saved tensor, its forward runs
/// again up to the last operator that saves one (early stop), with fresh storages; weights that
/// autocast had cast are cast anew, since its cache ends with the forward; inputs are held until
/// the last node is done. Source: torch/utils/checkpoint.py,
/// _checkpoint_without_reentrant_generator.
///
/// A module that does not occur is refused with the nearest name; nested names checkpoint once, at
/// the outer one; a call whose backward needs nothing is left as it is, and so is a step without a
/// backward. Not counted: the random state, which is kept on the host (5 KiB a checkpoint), and the
/// host's time for the hooks of saved tensors.
[[nodiscard]] Result<Step> with_checkpointing(const Step& step,
                                              const std::vector<std::string>& modules);

}  // namespace stoker
