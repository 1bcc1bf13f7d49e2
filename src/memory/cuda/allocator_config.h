#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

// Constants of PyTorch's allocator: pytorch/pytorch c10/core/AllocatorConfig.h, all in bytes.
inline constexpr Bytes kMinBlockSize{512};      ///< every size is a multiple of it
inline constexpr Bytes kSmallSize{1 << 20};     ///< the largest request of the small pool
inline constexpr Bytes kSmallSegment{2 << 20};  ///< "kSmallBuffer": a segment of the small pool
inline constexpr Bytes kMinLargeAllocation{10 << 20};   ///< from here on a segment of its own
inline constexpr Bytes kLargeRounding{2 << 20};         ///< "kRoundLarge": of those segments
inline constexpr Bytes kDefaultLargeSegment{20 << 20};  ///< "kLargeBuffer"
inline constexpr Bytes kNoSplitLimit{std::numeric_limits<std::int64_t>::max()};

/// Intervals [1 MiB, 2 MiB), [2 MiB, 4 MiB) ... up to 64 GiB, each with its own number of
/// divisions; sizes below the first use the first, sizes above the last use the last.
inline constexpr std::size_t kRoundupIntervals = 16;

/// The environment variables that PyTorch reads, the first that is set wins.
inline constexpr std::array<std::string_view, 2> kAllocatorEnvironment{"PYTORCH_ALLOC_CONF",
                                                                       "PYTORCH_CUDA_ALLOC_CONF"};

/// Settings of the caching allocator; the defaults are PyTorch's.
struct AllocatorConfig {
  /// Segment that requests of 1 to 10 MiB share. Smaller wastes less, larger calls cudaMalloc less
  /// often.
  Bytes large_segment = kDefaultLargeSegment;
  /// Blocks of this size and above are never split: less fragmentation, more cudaMalloc.
  Bytes max_split_size = kNoSplitLimit;
  /// How much larger than an unsplittable request a cached block may be; matters with
  /// max_split_size.
  Bytes max_non_split_rounding = kDefaultLargeSegment;
  /// Share of the allowed memory above which old cached segments are given back before cudaMalloc;
  /// 0 is off. Works only together with `memory_fraction`, as in PyTorch.
  double garbage_collection_threshold = 0;
  /// Divisions between powers of two that a request is rounded up to, by interval; 0 and 1 are off.
  std::array<std::uint32_t, kRoundupIntervals> roundup_power2_divisions{};
  /// One growing range of addresses per stream and pool instead of many segments.
  bool expandable_segments = false;
  /// torch.cuda.set_per_process_memory_fraction: share of the device's total memory, context not
  /// counted.
  std::optional<double> memory_fraction;

  bool operator==(const AllocatorConfig&) const = default;
};

/// Reads the text of PYTORCH_ALLOC_CONF ("max_split_size_mb:128,expandable_segments:True") by
/// PyTorch's rules. Keys about pinned host memory and locks are accepted and change nothing here.
[[nodiscard]] Result<AllocatorConfig> parse_allocator_config(std::string_view text);

/// A request rounded up to the size of a block (PyTorch: round_size). `requested` > 0.
[[nodiscard]] Bytes block_size(Bytes requested, const AllocatorConfig& config);

/// What is asked from cudaMalloc for a block of that (rounded) size (PyTorch: get_allocation_size).
[[nodiscard]] constexpr Bytes segment_size(Bytes block, const AllocatorConfig& config) {
  if (block <= kSmallSize) return kSmallSegment;
  if (block < kMinLargeAllocation) return config.large_segment;
  const std::int64_t step = kLargeRounding.count();
  return Bytes{(block.count() + step - 1) / step * step};
}

}  // namespace stoker
