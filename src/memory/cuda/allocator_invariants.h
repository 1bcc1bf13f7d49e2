#pragma once

// For tests and the fuzzer: what must hold of the allocator at any time.

#include <string>

#include "memory/cuda/allocator.h"

namespace stoker {

/// Empty, or the first invariant that is broken. `capacity` in bytes.
[[nodiscard]] inline std::string broken_invariant(const CachingAllocator& allocator,
                                                  std::int64_t capacity) {
  std::int64_t allocated = 0, requested = 0, reserved = 0, blocks_in_use = 0, segments = 0, end = 0;
  for (const auto& segment : allocator.segments()) {
    if (segment.blocks.front().address < end) return "segments overlap";
    std::int64_t bytes = 0;
    const CachingAllocator::BlockView* previous = nullptr;
    for (const auto& block : segment.blocks) {
      if (block.size <= 0 || block.size % 512 != 0) return "a block is no multiple of 512 bytes";
      if (previous && previous->address + previous->size != block.address)
        return "blocks overlap or leave a hole";
      if (previous && !previous->allocated && !block.allocated &&
          previous->mapped == block.mapped) {
        return "two free neighbours were not merged";
      }
      if (!block.mapped && (block.allocated || !segment.expandable))
        return "unmapped memory in use";
      if (block.allocated && (block.requested <= 0 || block.requested > block.size))
        return "a block too small";
      if (block.allocated) requested += block.requested;
      if (block.allocated && !block.pending) allocated += block.size, ++blocks_in_use;
      if (block.mapped) bytes += block.size;
      previous = &block;
    }
    end = previous->address + previous->size;
    reserved += bytes;
    if (!segment.expandable) ++segments;
    if (!segment.expandable && segment.small && bytes != kSmallSegment.count())
      return "a small segment not of 2 MiB";
  }
  const AllocatorStats& stats = allocator.stats();
  if (allocated != stats.allocated.count()) return "allocated bytes are not those of the blocks";
  if (requested != stats.requested.count()) return "requested bytes are not those of the blocks";
  if (reserved != stats.reserved.count()) return "reserved bytes are not those of the segments";
  if (blocks_in_use != stats.allocations) return "the count of allocations is wrong";
  if (segments != stats.segments) return "the count of segments is wrong";
  if (reserved > capacity) return "more was reserved than there is";
  if (stats.allocated > stats.allocated_peak || stats.reserved > stats.reserved_peak ||
      stats.requested > stats.requested_peak) {
    return "a peak lies below its value";
  }
  return {};
}

}  // namespace stoker
