// How the allocator gives memory back: the retry, the oversize blocks of max_split_size, the
// garbage collection by age, and the growing ranges of expandable_segments.

#include <algorithm>

#include "memory/cuda/allocator.h"

namespace stoker {
namespace {

/// Address range of an expandable segment when the size of the device is not known: 16 TiB.
constexpr std::int64_t kRangeWithoutTotal = std::int64_t{1} << 44;

}  // namespace

/// cudaFree of a whole, cached segment.
void CachingAllocator::release_segment(Slot slot) {
  uncache(slot);
  const Block& block = blocks_[slot];
  note(DeviceEvent::Kind::kFree, block.heap, block.address, block.size);
  stats_.reserved -= Bytes{block.size};
  --stats_.segments;
  ++stats_.device_frees;
  drop_slot(slot);
}

/// Waits for the streams that hold up a free, then gives back every segment that no live block
/// holds, and every whole free page of expandable ranges.
void CachingAllocator::release_cached() {
  for (const Slot slot : std::exchange(pending_, {})) return_to_cache(slot);
  for (const std::size_t size_class : {1, 0}) {  // large, then small
    for (std::size_t h = size_class; h < heaps_.size(); h += 2) {
      if (heaps_[h].private_pool != 0) continue;
      const FreeList& list = heaps_[h].free;
      scratch_.clear();
      for (auto cursor = list.first(); !cursor.at_end(); cursor = list.next(cursor)) {
        scratch_.push_back(list[cursor].block);
      }
      for (const Slot slot : scratch_) {
        if (blocks_[slot].range != kNotExpandable) {
          unmap_pages(slot);
        } else if (!is_split(blocks_[slot])) {
          release_segment(slot);
        }
      }
    }
  }
}

bool CachingAllocator::release_segment_at(Bytes address) {
  for (std::size_t slot = 0; slot < blocks_.size(); ++slot) {
    const Block& block = blocks_[slot];
    if (block.size == 0 || block.address != address.count()) continue;
    if (block.in_use() || block.range != kNotExpandable || is_split(block)) return false;
    release_segment(static_cast<Slot>(slot));
    return true;
  }
  return false;
}

/// With a finite max_split_size: gives back the smallest cached block that the request could have
/// used alone, or else the largest unsplittable ones until their sum reaches the request.
bool CachingAllocator::release_oversize(const Request& request) {
  // PyTorch does not support both settings at once; ranges have nothing to give back one by one.
  if (config_.max_split_size == kNoSplitLimit || config_.expandable_segments) return false;
  const std::int64_t limit = config_.max_split_size.count();
  const std::int64_t wanted = std::max(request.size, limit);
  FreeList& list = heaps_[request.heap].free;
  const FreeList::Cursor enough = list.at_least(wanted);
  if (!enough.at_end()) {
    release_segment(list[enough].block);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted) {
    const FreeList::Cursor largest = list.last();
    if (largest.at_end() || list[largest].size < limit) return false;
    released += list[largest].size;
    release_segment(list[largest].block);
  }
  return true;
}

/// Above the threshold: gives back whole large segments older than the average, oldest rounds
/// first, until the excess is gone or no more can be freed. Age counts searches of the pool since a
/// block was cached.
void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(config_.garbage_collection_threshold *
                                                   static_cast<double>(*allowed_));
  const std::int64_t excess = stats_.reserved.count() - threshold;
  if (excess <= 0) return;
  const std::int64_t now = searches_[1];
  scratch_.clear();
  std::int64_t total_age = 0;
  for (std::size_t h = 1; h < heaps_.size(); h += 2) {
    if (heaps_[h].private_pool != 0) continue;
    const FreeList& list = heaps_[h].free;
    for (auto cursor = list.first(); !cursor.at_end(); cursor = list.next(cursor)) {
      const Slot slot = list[cursor].block;
      if (is_split(blocks_[slot]) || blocks_[slot].range != kNotExpandable) continue;
      scratch_.push_back(slot);
      total_age += now - blocks_[slot].cached_at;
    }
  }
  std::int64_t reclaimed = 0;
  for (bool freed = true; reclaimed < excess && freed && !scratch_.empty();) {
    const double average = static_cast<double>(total_age) / static_cast<double>(scratch_.size());
    freed = false;
    std::erase_if(scratch_, [&](Slot slot) {
      const std::int64_t age = now - blocks_[slot].cached_at;
      if (static_cast<double>(age) < average) return false;
      freed = true;
      reclaimed += blocks_[slot].size;
      total_age -= age;
      release_segment(slot);
      return true;
    });
  }
}

// Expandable segments.

/// Best fit counts a block at the end of the mapped part with the unmapped addresses behind it, so
/// that the search goes on while the next larger block is the smaller by that measure.
CachingAllocator::Slot CachingAllocator::best_expandable_fit(const FreeList& list,
                                                             FreeList::Cursor& cursor) const {
  const auto reach = [this](Slot slot) {
    const Block& block = blocks_[slot];
    const bool grows = block.next != kNone && !blocks_[block.next].mapped;
    return block.size + (grows ? blocks_[block.next].size : 0);
  };
  for (auto next = list.next(cursor); !next.at_end(); next = list.next(next)) {
    if (reach(list[next].block) >= reach(list[cursor].block)) break;
    cursor = next;
  }
  return list[cursor].block;
}

/// The lowest run of free and unmapped blocks with room for the request, or a new range.
CachingAllocator::Slot CachingAllocator::find_expandable(const Request& request) {
  const auto has_room_from = [&](Slot slot) {
    std::int64_t bytes = 0;
    for (; bytes < request.size && slot != kNone && !blocks_[slot].in_use();
         slot = blocks_[slot].next) {
      bytes += blocks_[slot].size;
    }
    return bytes >= request.size;
  };
  for (Slot slot : heaps_[request.heap].unmapped) {
    const Slot previous = blocks_[slot].previous;
    if (previous != kNone && !blocks_[previous].in_use()) slot = previous;
    if (has_room_from(slot)) return slot;
  }
  Range range{};
  range.page = is_small(request.heap) ? kSmallSegment.count() : config_.large_segment.count();
  const std::int64_t wanted =
      std::max(std::min(total_ + total_ / 8, kRangeWithoutTotal), request.size);
  range.bytes = (wanted + range.page - 1) / range.page * range.page;
  range.address = take_address(range.bytes);
  ranges_.push_back(range);

  const Slot slot = new_slot();
  Block& block = blocks_[slot];
  block.address = range.address;
  block.size = range.bytes;
  block.heap = request.heap;
  block.range = static_cast<std::uint32_t>(ranges_.size() - 1);
  block.mapped = false;
  insert_unmapped(slot);
  return slot;
}

/// Backs the first `bytes` of an unmapped block, rounded up to pages, with memory and caches the
/// result.
bool CachingAllocator::map_pages(Slot slot, std::int64_t bytes) {
  const std::int64_t page = ranges_[blocks_[slot].range].page;
  const std::int64_t mapped = (bytes + page - 1) / page * page;
  if (!has_room(mapped)) return false;
  erase_unmapped(slot);
  blocks_[slot].mapped = true;
  note(DeviceEvent::Kind::kMap, blocks_[slot].heap, blocks_[slot].address, mapped);
  if (mapped < blocks_[slot].size) {
    const Slot rest = new_slot();
    Block& block = blocks_[slot];
    Block& remainder = blocks_[rest];
    remainder.address = block.address + mapped;
    remainder.size = block.size - mapped;
    remainder.mapped = false;
    block.size = mapped;
    insert_after(slot, rest);
    insert_unmapped(rest);
  }
  merge(slot, blocks_[slot].previous);
  merge(slot, blocks_[slot].next);
  cache(slot);
  ++stats_.device_mallocs;
  add_reserved(mapped);
  return true;
}

CachingAllocator::Slot CachingAllocator::grow_expandable(const Request& request) {
  Slot slot = find_expandable(request);
  if (!blocks_[slot].mapped && !map_pages(slot, std::min(blocks_[slot].size, request.size)))
    return kNone;
  while (blocks_[slot].size < request.size) {
    const Slot next = blocks_[slot].next;
    const std::int64_t missing = request.size - blocks_[slot].size;
    if (!map_pages(next, std::min(missing, blocks_[next].size))) return kNone;
    slot = next;  // which has swallowed the block before it
  }
  uncache(slot);
  return slot;
}

/// Gives back the whole pages inside a free block; what sticks out at both ends stays cached.
void CachingAllocator::unmap_pages(Slot slot) {
  const Range range = ranges_[blocks_[slot].range];
  const std::int64_t from = blocks_[slot].address - range.address;
  const std::int64_t to = from + blocks_[slot].size;
  const std::int64_t begin = (from + range.page - 1) / range.page * range.page;
  const std::int64_t end = to / range.page * range.page;
  if (begin >= end) return;
  uncache(slot);
  if (end < to) {
    const Slot after = new_slot();
    blocks_[after].address = range.address + end;
    blocks_[after].size = to - end;
    blocks_[slot].size -= to - end;
    insert_after(slot, after);
    cache(after);
  }
  Slot middle = slot;
  if (begin > from) {
    middle = new_slot();
    blocks_[middle].address = range.address + begin;
    blocks_[middle].size = end - begin;
    blocks_[slot].size = begin - from;
    insert_after(slot, middle);
    cache(slot);
  }
  blocks_[middle].mapped = false;
  note(DeviceEvent::Kind::kUnmap, blocks_[middle].heap, range.address + begin, end - begin);
  merge(middle, blocks_[middle].previous);
  merge(middle, blocks_[middle].next);
  stats_.reserved -= Bytes{end - begin};
  ++stats_.device_frees;
  if (is_split(blocks_[middle])) {
    insert_unmapped(middle);
  } else {
    drop_slot(middle);  // the whole range is free: its addresses are given back too
  }
}

std::optional<Bytes> CachingAllocator::range_of(Bytes address) const {
  std::optional<Bytes> base;
  for (const Range& range : ranges_) {
    const std::int64_t offset = address.count() - range.address;
    if (offset < 0 || offset >= range.bytes) continue;
    if (!base || range.address > base->count()) base = Bytes{range.address};
  }
  return base;
}

void CachingAllocator::insert_unmapped(Slot slot) {
  const Block& block = blocks_[slot];
  auto& list = heaps_[block.heap].unmapped;
  const auto place = std::lower_bound(
      list.begin(), list.end(), block.address,
      [this](Slot other, std::int64_t address) { return blocks_[other].address < address; });
  list.insert(place, slot);
}

void CachingAllocator::erase_unmapped(Slot slot) {
  auto& list = heaps_[blocks_[slot].heap].unmapped;
  list.erase(std::find(list.begin(), list.end(), slot));
}

}  // namespace stoker
