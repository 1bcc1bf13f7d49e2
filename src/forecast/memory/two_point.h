#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

/// Device memory in use while training with a batch.
struct MemoryReading {
  std::int64_t batch = 0;
  Bytes bytes;
};

/// What the method keeps back of each GPU, "1-1.5 GB" in the thesis; taken as binary multiples, as
/// the size of the card is.
inline constexpr Bytes kKeptBackLeast = kGiB;
inline constexpr Bytes kKeptBackMost{kGiB.count() * 3 / 2};
/// The two batches that the thesis read at.
inline constexpr std::array<std::int64_t, 2> kThesisBatches{10, 50};

/// The largest batch by two readings. The thesis takes memory to be M = b I + b O + X + 2 b Y
/// (inputs I, outputs O, activations and their gradients Y of one sample; model and rest X), a
/// straight line: two readings give its slope I + O + 2Y and X, and the GPU's memory is filled up.
struct TwoPointEstimate {
  double per_sample_bytes = 0;  ///< I + O + 2Y
  /// X. Negative when memory grows faster than the batch: the line then promises too much below
  /// the readings and is a poor guide above them.
  double fixed_bytes = 0;
  std::int64_t batch = 0;  ///< per GPU, keeping back kKeptBackMost; 0: not even one sample
  std::int64_t batch_at_least_kept = 0;  ///< per GPU, keeping back kKeptBackLeast
  int gpus = 1;
  [[nodiscard]] std::int64_t global_batch() const { return batch * gpus; }
};

/// Refuses readings of one batch, or where the larger batch takes no more memory than the smaller.
[[nodiscard]] Result<TwoPointEstimate> two_point_estimate(std::array<MemoryReading, 2> readings,
                                                          Bytes gpu_memory, int gpus = 1);

}  // namespace stoker
