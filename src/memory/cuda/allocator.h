#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "base/units.h"
#include "memory/cuda/allocator_config.h"
#include "memory/cuda/free_list.h"
#include "program/program.h"

namespace stoker {

enum class BlockId : std::uint32_t {};

/// Where a block comes from and whither it returns: one stream of the device within one pool, the
/// default one or a private one (of a CUDA graph or a MemPool).
enum class Lane : std::uint16_t {};
/// The lanes of a Program's streams, in the default pool; every allocator has them.
[[nodiscard]] constexpr Lane lane_of(Stream stream) {
  return Lane{static_cast<std::uint16_t>(stream)};
}

/// What the allocator asked of the device: cudaMalloc and cudaFree of a segment, or pages mapped
/// into and unmapped from an expandable one.
struct DeviceEvent {
  enum class Kind : std::uint8_t { kMalloc, kFree, kMap, kUnmap };
  Kind kind;
  Lane lane;
  Bytes address, bytes;
  bool operator==(const DeviceEvent&) const = default;
};

/// The device as the allocator sees it.
struct DeviceMemory {
  /// What cudaMalloc can give to this process in all, context and libraries already taken off;
  /// absent: without limit.
  std::optional<Bytes> capacity;
  /// The device's total memory (cudaMemGetInfo); absent: the capacity. Base of `memory_fraction`
  /// and of the size of an expandable segment's address range.
  std::optional<Bytes> total;
};

/// The numbers that PyTorch's OutOfMemoryError carries.
struct OutOfMemory {
  Bytes tried;      ///< size of the segment asked from cudaMalloc: 20 MiB for a 1-10 MiB request
  Bytes requested;  ///< what the program asked for
  Bytes total;      ///< of the device
  Bytes free;       ///< on the device, after everything that could be given back was
  Bytes allocated;  ///< "allocated by PyTorch"
  Bytes reserved_unallocated;    ///< "reserved by PyTorch but unallocated"
  std::optional<Bytes> allowed;  ///< by memory_fraction

  /// One sentence with the numbers written as PyTorch writes them ("20.00 MiB").
  [[nodiscard]] std::string text() const;
};

/// As torch.cuda.memory_stats has them. Bytes of blocks in use count the whole block (with the
/// slack of up to 1 MiB that a large block may carry); `requested` does not.
struct AllocatorStats {
  Bytes allocated, allocated_peak;
  Bytes reserved, reserved_peak;
  Bytes requested, requested_peak;
  std::int64_t allocations = 0;  ///< blocks in use
  std::int64_t segments = 0;  ///< from cudaMalloc; expandable ones are not counted, as in PyTorch
  std::int64_t retries = 0;   ///< num_alloc_retries: the whole cache was given back to go on
  std::int64_t out_of_memory = 0;
  std::int64_t device_mallocs = 0, device_frees = 0;  ///< calls, mappings of pages among them
};

/// PyTorch's CUDACachingAllocator, simulated: the same block for the same sequence of requests.
/// Rules and sources: docs/models/memory.md.
///
/// Deterministic. Simulated addresses only ever grow: each cudaMalloc (or reserved range) lies
/// above all earlier ones, also when memory was given back. So among blocks of equal size the one
/// of the oldest segment comes first, which is PyTorch's own rule since its blocks count the
/// segments (registration_counter); before, the address decided. One thread; copying is a snapshot.
class CachingAllocator {
 public:
  explicit CachingAllocator(const AllocatorConfig& config = {}, const DeviceMemory& device = {});

  /// A block for `requested` > 0 bytes. On failure everything that could be given back has been.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes requested, Lane lane);
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes requested, Stream stream) {
    return allocate(requested, lane_of(stream));
  }
  /// Returns a block that is in use to its pool.
  void free(BlockId block);
  /// The free of a block that another stream has used (record_stream): it stops counting as
  /// allocated now and can be had again after `finish_free`, when that stream is done with it.
  /// Before the cache is given back all streams are waited for, which finishes every such free.
  void begin_free(BlockId block);
  void finish_free(BlockId block);
  /// Frees begun and not finished.
  [[nodiscard]] std::size_t pending_frees() const { return pending_.size(); }
  /// torch.cuda.empty_cache().
  void empty_cache() { release_cached(); }
  void reset_peaks();

  /// A further lane: another stream of the default pool (0), or a stream of the private pool of
  /// that number. Private pools give nothing back: their CUDA graph may be replayed at any time.
  [[nodiscard]] Lane add_lane(std::uint32_t private_pool = 0);

  // For replaying what a real allocator did.

  /// From now on `take_device_events` returns what was asked of the device since it was last
  /// called.
  void record_device_events() { records_ = true; }
  [[nodiscard]] std::vector<DeviceEvent> take_device_events();
  /// Where the next segment (or reserved range) begins, in place of the next growing address.
  void place_next_segment(std::optional<Bytes> address) {
    placed_ = address ? std::optional(address->count()) : std::nullopt;
  }
  /// Gives back the one segment that begins there, if nothing in it is in use: whether it did.
  bool release_segment_at(Bytes address);
  /// Where the expandable range begins that holds the address, if one does.
  [[nodiscard]] std::optional<Bytes> range_of(Bytes address) const;
  /// From now on as if the device could give this process so much; until `restore_device`.
  void limit_device(Bytes capacity) { capacity_ = capacity.count(); }
  void restore_device() { capacity_ = served_; }

  [[nodiscard]] const AllocatorStats& stats() const { return stats_; }
  [[nodiscard]] Bytes address_of(BlockId block) const {
    return Bytes{blocks_[index(block)].address};
  }
  /// Bytes of the whole block.
  [[nodiscard]] Bytes size_of(BlockId block) const { return Bytes{blocks_[index(block)].size}; }
  [[nodiscard]] const AllocatorConfig& config() const { return config_; }

  struct BlockView {
    std::int64_t address, size, requested;
    bool allocated, mapped;
    bool pending;  ///< freed, but not yet to be had again; `allocated` is true as well
  };
  /// A run of neighbouring blocks: one cudaMalloc, or one expandable range with its unmapped parts.
  struct SegmentView {
    Lane lane;
    bool small, expandable;
    std::vector<BlockView> blocks;  ///< by address
  };
  /// Everything the allocator holds, by address; for tests and snapshots, not fast.
  [[nodiscard]] std::vector<SegmentView> segments() const;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;
  static constexpr std::uint32_t kNotExpandable = 0xffffffff;
  static constexpr std::size_t kProgramStreams = 4;

  enum class State : std::uint8_t { kFree, kAllocated, kPending };

  struct Block {
    std::int64_t address = 0, size = 0;  ///< size 0: an unused slot
    std::int64_t requested = 0;
    std::int64_t cached_at = 0;  ///< searches of its pool when it was last cached (its age)
    Slot previous = kNone, next = kNone;
    std::uint32_t range = kNotExpandable;
    std::uint16_t heap = 0;
    State state = State::kFree;
    bool mapped = true;

    [[nodiscard]] bool in_use() const { return state != State::kFree; }
  };
  /// An expandable segment: addresses reserved once, pages mapped into it as needed.
  struct Range {
    std::int64_t address, bytes, page;
  };
  /// The blocks of one lane and size class. Its index is twice that of the lane, plus one for large
  /// blocks.
  struct Heap {
    FreeList free;
    std::vector<Slot> unmapped;  ///< by address
    std::uint32_t private_pool = 0;
  };
  struct Request {
    std::int64_t size;     ///< of the block, rounded
    std::int64_t segment;  ///< to ask from cudaMalloc
    std::uint16_t heap;
  };

  [[nodiscard]] Slot take_cached(const Request& request);
  [[nodiscard]] Slot take_new(const Request& request);
  [[nodiscard]] Slot device_malloc(const Request& request);
  void hand_out(Slot slot, const Request& request, std::int64_t requested);
  [[nodiscard]] bool should_split(const Block& block, std::int64_t size) const;
  [[nodiscard]] OutOfMemory describe_failure(const Request& request, Bytes requested);

  void collect_garbage();
  [[nodiscard]] bool release_oversize(const Request& request);
  void release_cached();
  void release_segment(Slot slot);

  [[nodiscard]] Slot best_expandable_fit(const FreeList& list, FreeList::Cursor& cursor) const;
  [[nodiscard]] Slot find_expandable(const Request& request);
  [[nodiscard]] bool map_pages(Slot slot, std::int64_t bytes);
  [[nodiscard]] Slot grow_expandable(const Request& request);
  void unmap_pages(Slot slot);
  void insert_unmapped(Slot slot);
  void erase_unmapped(Slot slot);

  [[nodiscard]] Slot new_slot();
  void drop_slot(Slot slot);
  void insert_after(Slot slot, Slot added);
  void merge(Slot into, Slot neighbour);
  void stop_counting(Slot slot);
  void return_to_cache(Slot slot);
  void cache(Slot slot);
  void uncache(Slot slot);
  [[nodiscard]] bool is_split(const Block& b) const {
    return b.previous != kNone || b.next != kNone;
  }
  [[nodiscard]] bool collects_garbage() const {
    return allowed_ && config_.garbage_collection_threshold > 0;
  }
  [[nodiscard]] static bool is_small(std::uint16_t heap) { return heap % 2 == 0; }
  [[nodiscard]] static Lane lane_of_heap(std::uint16_t heap) {
    return Lane{static_cast<std::uint16_t>(heap / 2)};
  }
  [[nodiscard]] bool has_room(std::int64_t bytes) const {
    return bytes <= capacity_ - stats_.reserved.count();
  }
  void add_reserved(std::int64_t bytes);
  [[nodiscard]] std::int64_t take_address(std::int64_t bytes);
  void note(DeviceEvent::Kind kind, std::uint16_t heap, std::int64_t address, std::int64_t bytes) {
    if (records_) events_.push_back({kind, lane_of_heap(heap), Bytes{address}, Bytes{bytes}});
  }

  AllocatorConfig config_;
  std::int64_t capacity_;  ///< "without limit" is a number that nothing reaches
  std::int64_t served_;    ///< the capacity that the device was said to have
  std::int64_t total_;
  std::optional<std::int64_t> allowed_;  ///< by memory_fraction
  std::int64_t next_address_;
  std::optional<std::int64_t> placed_;  ///< the next segment's address, when it was given
  std::vector<Block> blocks_;
  std::vector<Slot> unused_;
  std::vector<Slot> pending_;
  std::vector<Heap> heaps_;
  std::array<std::int64_t, 2> searches_{};  ///< of the default pool's small and large blocks
  std::vector<Range> ranges_;
  std::vector<Slot> scratch_;
  AllocatorStats stats_;
  std::vector<DeviceEvent> events_;
  bool records_ = false;
};

}  // namespace stoker
