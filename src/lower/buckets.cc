#include "lower/buckets.h"

namespace stoker {

std::vector<std::uint32_t> assign_buckets(const std::vector<ReadyGradient>& gradients, const BucketCaps& caps) {
  std::vector<std::uint32_t> assignment;
  assignment.reserve(gradients.size());
  std::uint32_t bucket = 0;
  Bytes filled;
  for (const ReadyGradient& gradient : gradients) {
    assignment.push_back(bucket);
    filled += gradient.bytes;
    if (filled >= (bucket == 0 ? caps.first : caps.others)) {
      ++bucket;
      filled = Bytes(0);
    }
  }
  return assignment;
}

}  // namespace stoker
