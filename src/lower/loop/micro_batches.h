#pragma once

#include "lower/common/lowering.h"
#include "lower/common/storage_buffers.h"
#include "lower/loop/step_walk.h"

namespace stoker {

/// Micro-batches up to which all are written out; of more, those in the middle are one pair that is
/// repeated.
inline constexpr int kMostWrittenOut = 8;

/// Emits the `count` micro-batches of an iteration with `walk`. Where two pairs of them turn out
/// alike, the second stands for all but the last ones, and is returned.
[[nodiscard]] Repeated walk_micro_batches(StepWalk& walk, StorageBuffers& storages,
                                          const Lowering& lowering, int count);

}  // namespace stoker
