#include "forecast/memory/two_point.h"

#include <algorithm>
#include <cmath>

#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

/// Samples; readings that promise more differ by next to nothing a sample, and tell nothing.
constexpr double kLargestBatch = 1e9;

std::string text_of(const MemoryReading& reading) {
  return human_bytes(reading.bytes) + " at batch " + std::to_string(reading.batch);
}

Status check(const MemoryReading& small, const MemoryReading& large) {
  const std::string where = mark(Setting::kReading);
  for (const MemoryReading& reading : {small, large}) {
    if (reading.batch < 1 || reading.bytes.count() < 1)
      return fail(ErrorCode::kBadInput, "a reading needs a batch of at least 1 and some memory",
                  where);
  }
  if (small.batch == large.batch) {
    return fail(ErrorCode::kBadInput,
                "both readings are of batch " + std::to_string(small.batch) +
                    "; read at two batches far apart, such as 10 and 50",
                where);
  }
  if (large.bytes <= small.bytes) {
    return fail(ErrorCode::kBadInput,
                "the readings contradict each other: " + text_of(large) + " is no more than " +
                    text_of(small) +
                    "; read both in fresh processes on the same GPU, at batches further apart",
                where);
  }
  return {};
}

}  // namespace

Result<TwoPointEstimate> two_point_estimate(std::array<MemoryReading, 2> readings, Bytes gpu_memory,
                                            int gpus) {
  auto& [small, large] = readings;
  if (small.batch > large.batch) std::swap(small, large);
  TRY(check(small, large));
  TwoPointEstimate estimate;
  estimate.gpus = gpus;
  estimate.per_sample_bytes = static_cast<double>((large.bytes - small.bytes).count()) /
                              static_cast<double>(large.batch - small.batch);
  estimate.fixed_bytes = static_cast<double>(small.bytes.count()) -
                         static_cast<double>(small.batch) * estimate.per_sample_bytes;
  const auto filling = [&](Bytes kept_back) {
    const double room =
        static_cast<double>((gpu_memory - kept_back).count()) - estimate.fixed_bytes;
    return static_cast<std::int64_t>(std::floor(std::max(0.0, room) / estimate.per_sample_bytes));
  };
  const double most = static_cast<double>(gpu_memory.count()) - estimate.fixed_bytes;
  if (most / estimate.per_sample_bytes > kLargestBatch) {
    return fail(ErrorCode::kBadInput,
                "the readings are too close to tell what a sample takes: " + text_of(small) +
                    " and " + text_of(large) + "; read at batches whose memory differs clearly",
                mark(Setting::kReading));
  }
  estimate.batch = filling(kKeptBackMost);
  estimate.batch_at_least_kept = filling(kKeptBackLeast);
  return estimate;
}

}  // namespace stoker
