#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "program/program.h"
#include "step/sizes.h"
#include "step/step.h"

namespace stoker {

/// One gradient as the reducer sees it, in the order in which gradients become ready.
struct ReadyGradient {
  Bytes bytes;
  std::uint32_t parameter = 0;
};

/// Which gradients DDP reduces together (torch/csrc/distributed/c10d/reducer.cpp,
/// compute_bucket_assignment_by_size): filled in order of readiness, as rebuilt after the first
/// iteration; a bucket closes when it has reached its cap, so it may exceed it; the first cap is
/// smaller so that communication starts early.
struct BucketCaps {
  Bytes first{1 << 20};    ///< kDefaultFirstBucketBytes
  Bytes others{25 << 20};  ///< bucket_cap_mb = 25
};

/// Bucket index of each gradient, in the order given; indices rise.
[[nodiscard]] std::vector<std::uint32_t> assign_buckets(const std::vector<ReadyGradient>& gradients,
                                                        const BucketCaps& caps = {});

/// The buckets of a step's gradients.
struct BucketPlan {
  std::vector<GradientBucket> buckets;
  std::vector<std::uint32_t> bucket_of;  ///< by parameter; meaningless for those without gradient
};

/// `last_write`: by storage, the event that completes it. Parameters may share a gradient storage
/// (recurrent layers) and still lie in different buckets.
[[nodiscard]] BucketPlan plan_buckets(const Step& step, const Sizes& sizes,
                                      std::span<const std::uint32_t> last_write);

}  // namespace stoker
