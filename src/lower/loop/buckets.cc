#include "lower/loop/buckets.h"

#include <algorithm>

namespace stoker {

std::vector<std::uint32_t> assign_buckets(const std::vector<ReadyGradient>& gradients,
                                          const BucketCaps& caps) {
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

BucketPlan plan_buckets(const Step& step, const Sizes& sizes,
                        std::span<const std::uint32_t> last_write) {
  struct Ready {
    std::uint32_t parameter, storage;
  };
  std::vector<Ready> ready;
  for (std::uint32_t i = 0; i < step.parameters.size(); ++i) {
    const std::int64_t gradient = step.parameters[i].gradient;
    if (gradient >= 0) ready.push_back({i, static_cast<std::uint32_t>(gradient)});
  }
  std::stable_sort(ready.begin(), ready.end(), [&](const Ready& a, const Ready& b) {
    return last_write[a.storage] < last_write[b.storage];
  });
  std::vector<ReadyGradient> gradients;
  for (const Ready& r : ready) {
    gradients.push_back({sizes.tensor(step, step.parameters[r.parameter].type), r.parameter});
  }
  const auto assignment = assign_buckets(gradients);
  BucketPlan plan;
  plan.bucket_of.resize(step.parameters.size());
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (assignment[i] >= plan.buckets.size()) plan.buckets.emplace_back();
    plan.buckets[assignment[i]].bytes += gradients[i].bytes;
    ++plan.buckets[assignment[i]].parameters;
    plan.bucket_of[ready[i].parameter] = assignment[i];
  }
  return plan;
}

}  // namespace stoker
