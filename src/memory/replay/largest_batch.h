#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/replay/replay.h"
#include "program/program.h"

namespace stoker {

/// Lowers the job at a batch size.
using LowerAt = std::function<Result<Program>(std::int64_t batch)>;

/// How much a search finds out about its answer.
enum class LargestBatchDetail : std::uint8_t {
  kBatch,     ///< batch, first_failing and, when not even batch 1 runs, why
  kDescribed  ///< also the holes below the answer, and its replay
};

/// What counts as running within the memory there is.
enum class CacheFlush : std::uint8_t {
  kAllowed,  ///< the allocator may give its cache back and ask again
  kNever     ///< its peak without any limit lies within it; a memory fraction is ignored
};

struct LargestBatchOptions {
  /// The search goes no further.
  std::int64_t limit = 1 << 20;
  /// A batch believed to be near the answer (of another GPU or precision); 0: none. Saves
  /// simulations and does not change the answer where "fits" is monotone.
  std::int64_t hint = 0;
  /// "Fits" is not monotone: a larger tensor may reuse a segment that a smaller one left too small.
  /// After the bisection this many batches above the answer are tried too, and the search goes on
  /// from any that fits; for a description as many below are tried, and those that fail are
  /// reported.
  std::int64_t neighbours = 4;
  LargestBatchDetail detail = LargestBatchDetail::kDescribed;
  CacheFlush flush = CacheFlush::kAllowed;
  /// Capacity is set by the search; `detail` applies to the final replay.
  ReplayOptions replay{};
};

struct LargestBatch {
  /// The largest batch found to run, such that none of the `neighbours` above it does; 0: not even
  /// 1 runs.
  std::int64_t batch = 0;
  /// The smallest batch above it that was seen to fail; absent when the limit ended the search.
  std::optional<std::int64_t> first_failing;
  /// Batches below, within `neighbours`, that do not run although `batch` does; empty with kBatch.
  std::vector<std::int64_t> holes;
  /// Runs only by giving the cache back and asking again (num_alloc_retries > 0): close to the
  /// edge, slower. Not known with kBatch.
  bool only_by_flushing = false;
  /// When batch 1 does not run: how much more memory it needs.
  std::optional<Bytes> missing;
  /// The replay of `batch`, or of batch 1 when that fails, under the capacity; with kBatch only the
  /// latter.
  MemoryOutcome outcome;
  int simulations = 0;
  /// A simulation near the answer left out repetitions that nothing proves to change nothing
  /// (MemoryOutcome::presumed).
  bool presumed = false;
};

/// The largest batch whose program runs when the device leaves `usable` bytes to the process in
/// all; each program's memory outside the allocator is taken off first. Doubles from the hint,
/// bisects, then looks at the neighbours.
[[nodiscard]] Result<LargestBatch> find_largest_batch(const LowerAt& lower_at, Bytes usable,
                                                      const LargestBatchOptions& options = {});

}  // namespace stoker
