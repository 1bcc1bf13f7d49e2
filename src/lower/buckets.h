#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace stoker {

/// One gradient as the reducer sees it, in the order in which gradients become ready.
struct ReadyGradient {
  Bytes bytes;
  std::uint32_t parameter = 0;
};

/// Which gradients DDP reduces together (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size):
/// filled in order of readiness, as rebuilt after the first iteration; a bucket closes when it has reached its cap,
/// so it may exceed it; the first cap is smaller so that communication starts early.
struct BucketCaps {
  Bytes first{1 << 20};    ///< kDefaultFirstBucketBytes
  Bytes others{25 << 20};  ///< bucket_cap_mb = 25
};

/// Bucket index of each gradient, in the order given; indices rise.
[[nodiscard]] std::vector<std::uint32_t> assign_buckets(const std::vector<ReadyGradient>& gradients,
                                                        const BucketCaps& caps = {});

}  // namespace stoker
