#include "memory/cuda/allocator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace stoker {
namespace {

/// "Without limit": far above any device, far below overflow.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 56;
/// Larger requests fail without a look, so that no sum can overflow.
constexpr std::int64_t kLargestRequest = std::int64_t{1} << 50;
/// Where the simulated addresses begin; looks like CUDA's, means nothing.
constexpr std::int64_t kFirstAddress = 0x7f00'0000'0000;
/// Every cudaMalloc and every reserved range starts at a multiple of it (the size of a device
/// page).
constexpr std::int64_t kAddressAlignment = 2 << 20;

/// A caller that breaks the contract has lost track of its blocks; nothing after that means
/// anything.
[[noreturn]] void broken_contract(const char* what) {
  std::fprintf(stderr, "stoker: CachingAllocator: %s\n", what);
  std::abort();
}

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorConfig& config, const DeviceMemory& device)
    : config_(config),
      capacity_(device.capacity ? device.capacity->count() : kUnlimited),
      served_(capacity_),
      total_(device.total ? device.total->count() : capacity_),
      next_address_(kFirstAddress),
      heaps_(2 * kProgramStreams) {
  // PyTorch refuses less; the rules below rest on a segment for small requests being splittable.
  config_.max_split_size = std::max(config_.max_split_size, config_.large_segment);
  if (config.memory_fraction && total_ < kUnlimited) {
    allowed_ = static_cast<std::int64_t>(*config.memory_fraction * static_cast<double>(total_));
  }
}

tl::expected<BlockId, OutOfMemory> CachingAllocator::allocate(Bytes requested, Lane lane) {
  if (requested.count() <= 0) broken_contract("asked for no bytes");
  Request request{};
  request.heap = static_cast<std::uint16_t>(2 * static_cast<unsigned>(lane));
  if (requested.count() > kLargestRequest) {
    request.segment = requested.count();
    return tl::unexpected(describe_failure(request, requested));
  }
  const Bytes size = block_size(requested, config_);
  request.size = size.count();
  request.segment = segment_size(size, config_).count();
  if (size > kSmallSize) ++request.heap;
  if (request.heap >= heaps_.size()) broken_contract("a lane that was never added");
  Slot slot = take_cached(request);
  if (slot == kNone) {
    slot = take_new(request);
    if (slot == kNone) return tl::unexpected(describe_failure(request, requested));
  }
  hand_out(slot, request, requested.count());
  return BlockId{slot};
}

CachingAllocator::Slot CachingAllocator::take_cached(const Request& request) {
  Heap& heap = heaps_[request.heap];
  if (heap.private_pool == 0) ++searches_[request.heap % 2];
  FreeList& list = heap.free;
  FreeList::Cursor cursor = list.at_least(request.size);
  if (cursor.at_end()) return kNone;
  Slot slot = list[cursor].block;
  if (blocks_[slot].range != kNotExpandable) slot = best_expandable_fit(list, cursor);
  const std::int64_t size = blocks_[slot].size;
  const std::int64_t limit = config_.max_split_size.count();
  if (request.size < limit && size >= limit) return kNone;
  if (request.size >= limit && size >= request.size + config_.max_non_split_rounding.count()) {
    return kNone;
  }
  list.erase(cursor);
  return slot;
}

/// A new segment; on failure gives back first what `max_split_size` keeps apart, then the whole
/// cache.
CachingAllocator::Slot CachingAllocator::take_new(const Request& request) {
  if (collects_garbage()) collect_garbage();
  Slot slot = device_malloc(request);
  if (slot == kNone && release_oversize(request)) slot = device_malloc(request);
  if (slot == kNone) {
    release_cached();
    ++stats_.retries;
    slot = device_malloc(request);
  }
  return slot;
}

CachingAllocator::Slot CachingAllocator::device_malloc(const Request& request) {
  if (allowed_ && stats_.reserved.count() + request.segment > *allowed_) return kNone;
  if (config_.expandable_segments) return grow_expandable(request);
  if (!has_room(request.segment)) return kNone;
  const Slot slot = new_slot();
  Block& block = blocks_[slot];
  block.address = take_address(request.segment);
  block.size = request.segment;
  block.heap = request.heap;
  note(DeviceEvent::Kind::kMalloc, request.heap, block.address, block.size);
  ++stats_.segments;
  ++stats_.device_mallocs;
  add_reserved(request.segment);
  return slot;
}

bool CachingAllocator::should_split(const Block& block, std::int64_t size) const {
  const std::int64_t remaining = block.size - size;
  if (is_small(block.heap) || config_.expandable_segments)
    return remaining >= kMinBlockSize.count();
  return size < config_.max_split_size.count() && remaining > kSmallSize.count();
}

/// The request takes the low end; the rest goes back to the cache.
void CachingAllocator::hand_out(Slot slot, const Request& request, std::int64_t requested) {
  if (should_split(blocks_[slot], request.size)) {
    const Slot rest = new_slot();
    Block& block = blocks_[slot];
    Block& remainder = blocks_[rest];
    remainder.address = block.address + request.size;
    remainder.size = block.size - request.size;
    block.size = request.size;
    insert_after(slot, rest);
    cache(rest);
  }
  Block& block = blocks_[slot];
  block.state = State::kAllocated;
  block.requested = requested;
  ++stats_.allocations;
  stats_.allocated += Bytes{block.size};
  stats_.requested += Bytes{requested};
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  stats_.requested_peak = std::max(stats_.requested_peak, stats_.requested);
}

void CachingAllocator::free(BlockId id) {
  stop_counting(static_cast<Slot>(id));
  return_to_cache(static_cast<Slot>(id));
}

void CachingAllocator::begin_free(BlockId id) {
  const auto slot = static_cast<Slot>(id);
  stop_counting(slot);
  blocks_[slot].state = State::kPending;
  pending_.push_back(slot);
}

void CachingAllocator::finish_free(BlockId id) {
  const auto found = std::find(pending_.begin(), pending_.end(), static_cast<Slot>(id));
  if (found == pending_.end()) {
    broken_contract("the free of a block was finished that was not begun");
  }
  pending_.erase(found);
  return_to_cache(static_cast<Slot>(id));
}

void CachingAllocator::stop_counting(Slot slot) {
  if (slot >= blocks_.size() || blocks_[slot].state != State::kAllocated) {
    broken_contract("a block that is not in use was freed");
  }
  --stats_.allocations;
  stats_.allocated -= Bytes{blocks_[slot].size};
}

void CachingAllocator::return_to_cache(Slot slot) {
  Block& block = blocks_[slot];
  stats_.requested -= Bytes{block.requested};
  block.state = State::kFree;
  block.requested = 0;
  merge(slot, block.previous);
  merge(slot, block.next);
  cache(slot);
}

void CachingAllocator::reset_peaks() {
  stats_.allocated_peak = stats_.allocated;
  stats_.reserved_peak = stats_.reserved;
  stats_.requested_peak = stats_.requested;
}

OutOfMemory CachingAllocator::describe_failure(const Request& request, Bytes requested) {
  ++stats_.out_of_memory;
  OutOfMemory failure;
  failure.tried = Bytes{request.segment};
  failure.requested = requested;
  failure.total = Bytes{total_};
  failure.free = Bytes{capacity_} - stats_.reserved;
  failure.allocated = stats_.allocated;
  failure.reserved_unallocated = stats_.reserved - stats_.allocated;
  if (allowed_) failure.allowed = Bytes{*allowed_};
  return failure;
}

std::vector<CachingAllocator::SegmentView> CachingAllocator::segments() const {
  std::vector<SegmentView> result;
  for (const Block& head : blocks_) {
    if (head.size == 0 || head.previous != kNone) continue;
    SegmentView view{
        lane_of_heap(head.heap), is_small(head.heap), head.range != kNotExpandable, {}};
    for (const Block* b = &head;; b = &blocks_[b->next]) {
      view.blocks.push_back(
          {b->address, b->size, b->requested, b->in_use(), b->mapped, b->state == State::kPending});
      if (b->next == kNone) break;
    }
    result.push_back(std::move(view));
  }
  std::sort(result.begin(), result.end(), [](const SegmentView& a, const SegmentView& b) {
    return a.blocks.front().address < b.blocks.front().address;
  });
  return result;
}

// Slots, neighbours and free lists.

CachingAllocator::Slot CachingAllocator::new_slot() {
  if (!unused_.empty()) {
    const Slot slot = unused_.back();
    unused_.pop_back();
    return slot;
  }
  blocks_.emplace_back();
  return static_cast<Slot>(blocks_.size() - 1);
}

void CachingAllocator::drop_slot(Slot slot) {
  blocks_[slot] = Block{};
  unused_.push_back(slot);
}

/// Links a new part of the same segment behind `slot`; it inherits where it belongs.
void CachingAllocator::insert_after(Slot slot, Slot added) {
  Block& block = blocks_[slot];
  Block& part = blocks_[added];
  part.heap = block.heap;
  part.range = block.range;
  part.previous = slot;
  part.next = block.next;
  if (block.next != kNone) blocks_[block.next].previous = added;
  block.next = added;
}

/// `into` swallows its neighbour if that is free and, as `into`, mapped or unmapped.
void CachingAllocator::merge(Slot into, Slot neighbour) {
  if (neighbour == kNone) return;
  Block& block = blocks_[into];
  Block& other = blocks_[neighbour];
  if (other.in_use() || other.mapped != block.mapped) return;
  if (other.mapped) {
    uncache(neighbour);
  } else {
    erase_unmapped(neighbour);
  }
  if (block.previous == neighbour) {
    block.address = other.address;
    block.previous = other.previous;
    if (block.previous != kNone) blocks_[block.previous].next = into;
  } else {
    block.next = other.next;
    if (block.next != kNone) blocks_[block.next].previous = into;
  }
  block.size += other.size;
  drop_slot(neighbour);
}

void CachingAllocator::cache(Slot slot) {
  Block& block = blocks_[slot];
  block.cached_at = searches_[block.heap % 2];
  heaps_[block.heap].free.insert({block.size, block.address, slot});
}

void CachingAllocator::uncache(Slot slot) {
  const Block& block = blocks_[slot];
  heaps_[block.heap].free.erase(block.size, block.address);
}

void CachingAllocator::add_reserved(std::int64_t bytes) {
  stats_.reserved += Bytes{bytes};
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
}

std::int64_t CachingAllocator::take_address(std::int64_t bytes) {
  if (placed_) return *std::exchange(placed_, std::nullopt);
  const std::int64_t address = next_address_;
  next_address_ += round_up(bytes, kAddressAlignment);
  return address;
}

Lane CachingAllocator::add_lane(std::uint32_t private_pool) {
  heaps_.resize(heaps_.size() + 2);
  heaps_.back().private_pool = heaps_[heaps_.size() - 2].private_pool = private_pool;
  return lane_of_heap(static_cast<std::uint16_t>(heaps_.size() - 2));
}

std::vector<DeviceEvent> CachingAllocator::take_device_events() {
  return std::exchange(events_, {});
}

}  // namespace stoker
