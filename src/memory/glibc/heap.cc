#include "memory/glibc/heap.h"

#include <algorithm>
#include <utility>

// Names in quotes are glibc's: malloc/malloc.c of version 2.36.
namespace stoker {
namespace {

constexpr std::int64_t kHeader = 8;            ///< "SIZE_SZ"
constexpr std::int64_t kGranularity = 16;      ///< "MALLOC_ALIGNMENT"
constexpr std::int64_t kSmallestChunk = 32;    ///< "MINSIZE"
constexpr std::int64_t kTensorAlignment = 64;  ///< c10/core/alignment.h, gAlignment
constexpr std::int64_t kToMemory = 16;         ///< from a chunk's begin to what the caller gets
/// What memalign cuts off in front of a mapping: pages begin aligned, the memory 16 bytes later.
constexpr std::int64_t kLeadOfMapping = kTensorAlignment - kToMemory;
constexpr std::int64_t kLargestFast = 128;     ///< "DEFAULT_MXFAST"
constexpr std::int64_t kSmallestLarge = 1024;  ///< "MIN_LARGE_SIZE"
/// "FASTBIN_CONSOLIDATION_THRESHOLD": a free chunk that grew to this looks at the top.
constexpr std::int64_t kLooksAtTop = 64 << 10;

std::int64_t round_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

/// "request2size"
std::int64_t chunk_size(std::int64_t bytes) {
  return std::max(kSmallestChunk, round_up(bytes + kHeader, kGranularity));
}

}  // namespace

Heap::Heap(const HeapRules& rules, const DeviceMemory& memory)
    : rules_(rules),
      memory_(memory),
      mmap_threshold_(rules.mmap_threshold.count()),
      trim_threshold_(rules.mmap_threshold.count()) {
  top_ = new_slot();
  chunks_[top_].state = State::kTop;
}

tl::expected<BlockId, OutOfMemory> Heap::allocate(Bytes requested, Stream) {
  // "_int_memalign" asks for room to move the chunk to an aligned place, and frees what is left
  // over in front and behind.
  const std::int64_t size = chunk_size(requested.count());
  const std::int64_t with_room = chunk_size(size + kTensorAlignment + kSmallestChunk);
  Slot slot = take(with_room);
  if (chunks_[slot].state != State::kMapped) slot = align(slot, size);
  chunks_[slot].requested = requested.count();
  ++stats_.allocations;
  stats_.requested += requested;
  stats_.allocated += Bytes{chunks_[slot].size};
  touch(slot);
  stats_.requested_peak = std::max(stats_.requested_peak, stats_.requested);
  stats_.allocated_peak = std::max(stats_.allocated_peak, stats_.allocated);
  if (memory_.capacity && stats_.reserved > *memory_.capacity) {
    ++stats_.out_of_memory;
    return tl::unexpected(
        OutOfMemory{requested, requested, memory_.total.value_or(*memory_.capacity), Bytes{0},
                    stats_.allocated, stats_.reserved - stats_.allocated, std::nullopt});
  }
  return BlockId{slot};
}

void Heap::free(BlockId chunk) {
  const auto slot = static_cast<Slot>(chunk);
  --stats_.allocations;
  stats_.requested -= Bytes{chunks_[slot].requested};
  stats_.allocated -= Bytes{chunks_[slot].size};
  if (chunks_[slot].state == State::kMapped) unmap(slot);
  else release(slot);
}

void Heap::reset_peaks() {
  stats_.allocated_peak = stats_.allocated;
  stats_.reserved_peak = stats_.reserved;
  stats_.requested_peak = stats_.requested;
}

// -- taking ("_int_malloc")
// ------------------------------------------------------------------------

Heap::Slot Heap::take(std::int64_t size) {
  if (size >= kSmallestLarge) consolidate();
  if (const Slot exact = take_unsorted(size); exact != kNone) return exact;
  if (const Slot fit = take_best_fit(size); fit != kNone) return fit;
  if (chunks_[top_].size >= size + kSmallestChunk) return take_from_top(size);
  if (!fast_.empty()) {
    consolidate();
    return take(size);
  }
  if (size >= mmap_threshold_) return map_pages(size);
  grow_top(size);
  return take_from_top(size);
}

/// Sorts what was freed since the last search into the bins, up to a chunk of exactly this size.
Heap::Slot Heap::take_unsorted(std::int64_t size) {
  for (std::size_t i = 0; i < unsorted_.size(); ++i) {
    const Slot slot = unsorted_[i];
    const bool exact = chunks_[slot].size == size;
    if (!exact) {
      bin(slot);
      continue;
    }
    unsorted_.erase(unsorted_.begin(), unsorted_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    chunks_[slot].state = State::kUsed;
    return slot;
  }
  unsorted_.clear();
  return kNone;
}

Heap::Slot Heap::take_best_fit(std::int64_t size) {
  const auto group = bins_.lower_bound(size);
  if (group == bins_.end()) return kNone;
  const Slot slot = group->second.back();
  group->second.pop_back();
  if (group->second.empty()) bins_.erase(group);
  chunks_[slot].state = State::kUsed;
  if (chunks_[slot].size - size >= kSmallestChunk) {
    const Slot rest = split(slot, size);
    chunks_[rest].state = State::kUnsorted;
    unsorted_.push_back(rest);
  }
  return slot;
}

Heap::Slot Heap::take_from_top(std::int64_t size) {
  const Slot slot = top_;
  top_ = split(slot, size);
  chunks_[top_].state = State::kTop;
  chunks_[slot].state = State::kUsed;
  return slot;
}

/// "sysmalloc" for the main arena: sbrk.
void Heap::grow_top(std::int64_t size) {
  Chunk& top = chunks_[top_];
  const std::int64_t missing = size + rules_.top_pad.count() + kSmallestChunk - top.size;
  top.size += round_up(missing, rules_.page.count());
  ++stats_.device_mallocs;
}

/// "sysmalloc_mmap"
Heap::Slot Heap::map_pages(std::int64_t size) {
  const Slot slot = new_slot();
  chunks_[slot].state = State::kMapped;
  chunks_[slot].size = round_up(size + kHeader, rules_.page.count());
  ++stats_.device_mallocs;
  return slot;
}

/// The part of a taken chunk that begins where memory is aligned; what is left over is freed.
Heap::Slot Heap::align(Slot slot, std::int64_t size) {
  std::int64_t lead = round_up(chunks_[slot].address + kToMemory, kTensorAlignment) - kToMemory -
                      chunks_[slot].address;
  if (lead > 0 && lead < kSmallestChunk) lead += kTensorAlignment;
  if (lead > 0) {
    const Slot aligned = split(slot, lead);
    chunks_[aligned].state = State::kUsed;
    release_fragment(slot);
    slot = aligned;
  }
  if (chunks_[slot].size > size + kSmallestChunk) {
    const Slot rest = split(slot, size);
    chunks_[rest].state = State::kUsed;
    release_fragment(rest);
  }
  return slot;
}

// -- giving back ("_int_free")
// ----------------------------------------------------------------------

/// What memalign leaves over: free, unless a small object takes it. Which ones is left to a
/// sequence of numbers without pattern, the same in every run (Numerical Recipes' generator).
void Heap::release_fragment(Slot slot) {
  random_ = random_ * 1664525U + 1013904223U;
  constexpr double kRange = 4294967296.0;
  if (random_ < rules_.kept_fragments * kRange) return;
  release(slot);
}

void Heap::release(Slot slot) {
  Chunk& chunk = chunks_[slot];
  if (chunk.size <= kLargestFast) {
    chunk.state = State::kFast;
    fast_.push_back(slot);
    return;
  }
  if (coalesce(slot) < kLooksAtTop) return;
  consolidate();
  if (chunks_[top_].size >= trim_threshold_) trim();
}

/// Joins a free chunk with free neighbours; it becomes unsorted, or part of the top. Returns its
/// size.
std::int64_t Heap::coalesce(Slot slot) {
  const auto is_free = [&](Slot s) {
    return s != kNone &&
           (chunks_[s].state == State::kUnsorted || chunks_[s].state == State::kBinned);
  };
  if (const Slot previous = chunks_[slot].previous; is_free(previous)) {
    unlink(previous);
    slot = previous;
    merge_next(slot);
  }
  const Slot next = chunks_[slot].next;
  if (next == top_) {
    merge_next(slot);
    top_ = slot;
    chunks_[slot].state = State::kTop;
    return chunks_[slot].size;
  }
  if (is_free(next)) {
    unlink(next);
    merge_next(slot);
  }
  chunks_[slot].state = State::kUnsorted;
  unsorted_.push_back(slot);
  return chunks_[slot].size;
}

/// "malloc_consolidate"
void Heap::consolidate() {
  const std::vector<Slot> fast = std::exchange(fast_, {});
  for (const Slot slot : fast) (void)coalesce(slot);
}

/// "systrim"
void Heap::trim() {
  Chunk& top = chunks_[top_];
  const std::int64_t page = rules_.page.count();
  const std::int64_t beyond = top.size - kSmallestChunk - 1 - rules_.top_pad.count();
  const std::int64_t given_back = beyond / page * page;
  if (given_back <= 0) return;
  top.size -= given_back;
  add_resident(-page * pages_.remove_from((top.address + top.size + page - 1) / page));
  ++stats_.device_frees;
}

/// "munmap_chunk", and the dynamic threshold of "__libc_free".
void Heap::unmap(Slot slot) {
  const std::int64_t size = chunks_[slot].size - kLeadOfMapping;
  if (size > mmap_threshold_ && size <= rules_.largest_mmap_threshold.count()) {
    mmap_threshold_ = size;
    trim_threshold_ = 2 * size;
  }
  add_resident(-chunks_[slot].touched);
  ++stats_.device_frees;
  drop_slot(slot);
}

// -- bookkeeping
// -------------------------------------------------------------------------------------

void Heap::bin(Slot slot) {
  chunks_[slot].state = State::kBinned;
  std::vector<Slot>& group = bins_[chunks_[slot].size];
  // Small bins are queues. A large one takes the newest, but never the first before the others.
  if (chunks_[slot].size < kSmallestLarge) group.insert(group.begin(), slot);
  else group.push_back(slot);
}

void Heap::unlink(Slot slot) {
  if (chunks_[slot].state == State::kUnsorted) {
    unsorted_.erase(std::find(unsorted_.begin(), unsorted_.end(), slot));
    return;
  }
  const auto group = bins_.find(chunks_[slot].size);
  group->second.erase(std::find(group->second.begin(), group->second.end(), slot));
  if (group->second.empty()) bins_.erase(group);
}

Heap::Slot Heap::split(Slot slot, std::int64_t size) {
  const Slot rest = new_slot();
  Chunk& chunk = chunks_[slot];
  Chunk& behind = chunks_[rest];
  behind.address = chunk.address + size;
  behind.size = chunk.size - size;
  behind.previous = slot;
  behind.next = chunk.next;
  if (behind.next != kNone) chunks_[behind.next].previous = rest;
  chunk.next = rest;
  chunk.size = size;
  return rest;
}

void Heap::merge_next(Slot slot) {
  Chunk& chunk = chunks_[slot];
  const Slot next = chunk.next;
  chunk.size += chunks_[next].size;
  chunk.next = chunks_[next].next;
  if (chunk.next != kNone) chunks_[chunk.next].previous = slot;
  drop_slot(next);
}

Heap::Slot Heap::new_slot() {
  if (unused_.empty()) {
    chunks_.emplace_back();
    return static_cast<Slot>(chunks_.size() - 1);
  }
  const Slot slot = unused_.back();
  unused_.pop_back();
  chunks_[slot] = Chunk{};
  return slot;
}

void Heap::drop_slot(Slot slot) {
  chunks_[slot] = Chunk{};
  unused_.push_back(slot);
}

void Heap::touch(Slot slot) {
  Chunk& chunk = chunks_[slot];
  const std::int64_t page = rules_.page.count();
  if (chunk.state == State::kMapped) {
    chunk.touched = chunk.size;  // the last page may hold nothing: a page at most
    fresh_ += chunk.touched;
    return add_resident(chunk.touched);
  }
  const std::int64_t begin = chunk.address + kToMemory;
  const std::int64_t added = page * pages_.add(begin / page, (begin + chunk.requested - 1) / page);
  fresh_ += added;
  add_resident(added);
}

void Heap::add_resident(std::int64_t bytes) {
  stats_.reserved += Bytes{bytes};
  stats_.reserved_peak = std::max(stats_.reserved_peak, stats_.reserved);
}

}  // namespace stoker
