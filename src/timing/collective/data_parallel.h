#pragma once

#include <vector>

#include "base/units.h"
#include "timing/collective/collectives.h"

/// The step of data-parallel training from the step of one GPU, without a program: for measured
/// steps and for models of which only the gradients' bytes are known. step_replay.h does the same
/// for captured models.
namespace stoker {

/// Gradients that are reduced together, and when on the clock of the one-GPU step the last of them
/// exists.
struct ReadyBucket {
  Bytes bytes;
  Nanos ready;
};

/// One optimizer step of one GPU, as it runs alone.
struct LonelyStep {
  Nanos total;         ///< of all micro-batches and the optimizer
  Nanos backward_end;  ///< of the last micro-batch's backward: only that reduces (no_sync before)
  std::vector<ReadyBucket> buckets;  ///< in the order of reduction
};

struct DataParallelTime {
  Nanos total;
  Nanos communication;  ///< sum of the collectives
  Nanos exposed;  ///< what the optimizer waited for: collectives and, of `total`, the slowest rank
};

/// start_k = max(ready_k, end_{k-1}); the optimizer waits for the last. While a bucket is reduced
/// the backward runs slower by `contention`, which delays the buckets that are not ready yet.
[[nodiscard]] DataParallelTime data_parallel_time(const LonelyStep& step,
                                                  const AllReduceModel& all_reduce,
                                                  const CollectiveCoefficients& coefficients);

/// Buckets of `gradients` bytes that become ready evenly between `begin` and `end` of the backward,
/// in DDP's caps: a small bucket first, then ones of `cap`.
[[nodiscard]] std::vector<ReadyBucket> even_buckets(Bytes gradients, Nanos begin, Nanos end,
                                                    Bytes first, Bytes cap);

/// The expected largest of so many draws of a standard normal: how many standard deviations the
/// slowest of the ranks is behind the mean.
[[nodiscard]] double slowest_of(int ranks);

}  // namespace stoker
