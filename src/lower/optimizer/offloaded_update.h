#pragma once

#include "program/job.h"
#include "program/program.h"
#include "step/sizes.h"

namespace stoker {

/// What FSDP's CPUOffloadPolicy leaves to the host's processor in one step: adding up the gradients
/// of several micro-batches, clipping, and `optimizer.step()` over this rank's shards, as one
/// kernel with the bytes that these passes read and write in the host's memory. `captured` is the
/// step before it was sharded, which tells what is trained; `sizes` are those of `sharded`. An
/// optimizer whose loop nobody chose goes tensor by tensor, PyTorch's default for tensors of a CPU.
[[nodiscard]] Kernel offloaded_update(const Step& captured, const Step& sharded, const Sizes& sizes,
                                      const Job& job);

}  // namespace stoker
