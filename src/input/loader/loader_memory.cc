#include "input/loader/loader_memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "input/loader/loader_constants.h"

namespace stoker {
namespace {

/// Descriptors of the training process a worker (multiprocessing/queues.py and popen_fork.py): both
/// ends of its index queue's pipe, its sentinel, and the end that its death is seen by; once: both
/// ends of the result queue.
constexpr std::int64_t kDescriptorsPerWorker = 4, kDescriptorsOfQueue = 2;

/// Beyond any computer's memory, so that absurd settings are said not to fit instead of
/// overflowing.
constexpr double kMostBytes = 1LL << 60;

Bytes bytes_of(double bytes) { return Bytes(std::llround(std::clamp(bytes, 0.0, kMostBytes))); }

double pow2_at_least(double bytes) {
  return static_cast<double>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp(std::ceil(bytes), 1.0, kMostBytes))));
}

}  // namespace

LoaderMemory loader_memory(const LoaderSettings& settings, const SampleCost& cost, int ranks) {
  LoaderMemory out;
  const std::int64_t batch = std::max<std::int64_t>(1, settings.batch);
  const double bytes = cost.batch_bytes(batch);
  const std::int64_t workers = std::max(0, settings.workers);
  const std::int64_t window = workers * std::max(1, settings.prefetch);
  if (workers > 0) {
    // The pin thread frees a batch when it has copied it, so that the loop holds none.
    const std::int64_t held = settings.pin ? 0 : 1;
    out.shared = bytes_of(static_cast<double>(window + held) * bytes * ranks);
  }
  if (settings.pin)
    out.pinned = bytes_of(pow2_at_least(bytes) * static_cast<double>(window + 1) * ranks);
  out.copied = Bytes(cost.copied_on_read.count() * workers * ranks);
  Bytes each = cost.transport.worker_private;
  if (settings.start_method != StartMethod::kFork) each += kInterpreterMemory + cost.start.pickled;
  out.workers = Bytes(each.count() * workers * ranks) + out.copied;
  if (workers > 0) {
    const double tensors = cost.batches.empty()
                               ? cost.tensors
                               : batch_facts_at(cost.batches, static_cast<double>(batch)).tensors;
    out.file_descriptors =
        std::llround(static_cast<double>(window + (settings.pin ? 0 : 1)) * tensors);
    out.pipes = workers * kDescriptorsPerWorker + kDescriptorsOfQueue;
  }
  return out;
}

LoaderMemory memory_in_turn(const std::vector<LoaderUse>& loaders, int ranks) {
  LoaderMemory peak;
  for (std::size_t running = 0; running < loaders.size(); ++running) {
    LoaderMemory now;
    for (std::size_t i = 0; i < loaders.size(); ++i) {
      const LoaderUse& loader = loaders[i];
      const LoaderMemory own = loader_memory(loader.settings, *loader.cost, ranks);
      now.pinned += own.pinned;
      const bool alive = i == running || loader.settings.persistent;
      if (!alive) continue;
      now.workers += own.workers;
      now.copied += own.copied;
      if (i == running) {
        now.shared += own.shared;
        now.file_descriptors += own.file_descriptors;
      }
      now.pipes += own.pipes;
    }
    peak.shared = std::max(peak.shared, now.shared);
    peak.pinned = std::max(peak.pinned, now.pinned);
    peak.workers = std::max(peak.workers, now.workers);
    peak.copied = std::max(peak.copied, now.copied);
    peak.file_descriptors = std::max(peak.file_descriptors, now.file_descriptors);
    peak.pipes = std::max(peak.pipes, now.pipes);
  }
  return peak;
}

}  // namespace stoker
