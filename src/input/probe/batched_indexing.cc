#include "input/probe/batched_indexing.h"

#include <algorithm>

namespace stoker {
namespace {

/// A sample that takes longer is made, not only fetched: NumPy and PyTorch hand out a row in 0.4 to
/// 6 us, a small image is decoded in 100.
constexpr Nanos kFetched = 20 * kMicrosecond;
/// How many times the gathering of its bytes a batch has to cost before it is the handling that is
/// paid for.
constexpr double kByFar = 3;
/// One indexing operation beside the bytes that it moves: NumPy takes 33 us in all for a list of
/// 1024 indices and rows of 264 bytes (Python 3.11, best of 300).
constexpr Nanos kIndexing = 30 * kMicrosecond;
/// Each index of the list, and its row where rows lie at random in a table larger than caches:
/// PyTorch 2.13 takes 322 us for 1024 of 264 bytes out of 52 MB (CPU time on a busy machine, so
/// rather too long than too short), 0.17 us a row beside the bytes.
constexpr Nanos kRow = 0.17 * kMicrosecond;

/// Making a batch in one operation, without the copy out of a worker.
Nanos indexing(const SampleCost& cost, double samples, double bytes) {
  return kIndexing + samples * kRow + Nanos(cost.transport.collate_private_ns * bytes);
}

}  // namespace

bool handles_samples_singly(const SampleCost& cost, std::int64_t batch) {
  if (cost.batches.empty()) return false;
  const auto samples = static_cast<double>(batch);
  const Nanos now =
      samples * cost.mean_cpu() + batch_facts_at(cost.batches, samples).collate_shared;
  const double bytes = cost.batch_bytes(batch);
  const Nanos copied(cost.transport.collate_shared_ns * bytes);
  if (now <= kByFar * (indexing(cost, samples, bytes) + copied)) return false;
  const bool only_fetched = !cost.iterable && cost.read_bytes <= 0 && cost.mean_cpu() <= kFetched;
  return only_fetched || collates_longer(cost, batch);
}

SampleCost indexed_by_batches(SampleCost cost) {
  for (BatchFacts& facts : cost.batches) {
    const auto bytes = static_cast<double>(facts.bytes.count());
    const Nanos whole = indexing(cost, static_cast<double>(facts.samples), bytes);
    const Nanos copied(cost.transport.collate_shared_ns * bytes);
    facts.collate_shared = std::min(facts.collate_shared, whole + copied);
    facts.collate_private = std::min(facts.collate_private, whole);
  }
  // Where fetching is all that a sample takes, nothing is left of it.
  if (cost.mean_cpu() > kFetched) return cost;
  std::fill(cost.cpu.begin(), cost.cpu.end(), Nanos{});
  std::fill(cost.wait.begin(), cost.wait.end(), Nanos{});
  return cost;
}

}  // namespace stoker
