#pragma once

#include <cstdint>
#include <vector>

#include "input/loader/loader_simulation.h"

namespace stoker {

/// What the loaders of the ranks of one host hold at most.
struct LoaderMemory {
  Bytes shared;   ///< /dev/shm: every batch of the window, and the one in the loop's hands
  Bytes pinned;   ///< blocks of PyTorch's pinned allocator are powers of two
  Bytes workers;  ///< private memory of the worker processes, copies on read included
  Bytes copied;   ///< of it: Python objects of the data set that workers copied by reading them
  std::int64_t file_descriptors = 0;  ///< of one training process: one a tensor on its way
  std::int64_t pipes = 0;             ///< likewise: pipes and sentinels of workers and queues
};

[[nodiscard]] LoaderMemory loader_memory(const LoaderSettings& settings, const SampleCost& cost,
                                         int ranks);

/// Several loaders of one job used in turn (training, validation). What one holds while another
/// runs: with persistent workers their private memory and their pipes, no batches; without, only
/// the blocks of the pinned allocator, which are never given back by themselves.
struct LoaderUse {
  LoaderSettings settings;
  const SampleCost* cost = nullptr;
};
[[nodiscard]] LoaderMemory memory_in_turn(const std::vector<LoaderUse>& loaders, int ranks);

}  // namespace stoker
