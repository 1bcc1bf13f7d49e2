#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "base/units.h"
#include "lower/program.h"
#include "memory/allocator_config.h"
#include "memory/free_list.h"

namespace stoker {

enum class BlockId : std::uint32_t {};

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
/// Rules and sources: docs/memory-model.md.
///
/// Deterministic. Simulated addresses only ever grow: each cudaMalloc (or reserved range) lies
/// above all earlier ones, also when memory was given back. PyTorch prefers the lower address only
/// among equal sizes. One thread; copying is a snapshot.
class CachingAllocator {
 public:
  explicit CachingAllocator(const AllocatorConfig& config = {}, const DeviceMemory& device = {});

  /// A block for `requested` > 0 bytes. On failure everything that could be given back has been.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes requested, Stream stream);
  /// Returns a block that is in use to its pool.
  void free(BlockId block);
  /// torch.cuda.empty_cache().
  void empty_cache() { release_cached(); }
  void reset_peaks();

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
  };
  /// A run of neighbouring blocks: one cudaMalloc, or one expandable range with its unmapped parts.
  struct SegmentView {
    Stream stream;
    bool small, expandable;
    std::vector<BlockView> blocks;  ///< by address
  };
  /// Everything the allocator holds, by address; for tests and snapshots, not fast.
  [[nodiscard]] std::vector<SegmentView> segments() const;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;
  static constexpr std::uint32_t kNotExpandable = 0xffffffff;
  static constexpr std::size_t kStreams = 4;

  struct Block {
    std::int64_t address = 0, size = 0;  ///< size 0: an unused slot
    std::int64_t requested = 0;
    std::int64_t cached_at = 0;  ///< searches of its pool when it was last cached (its age)
    Slot previous = kNone, next = kNone;
    std::uint32_t range = kNotExpandable;
    std::uint8_t pool = 0, stream = 0;
    bool allocated = false, mapped = true;
  };
  /// An expandable segment: addresses reserved once, pages mapped into it as needed.
  struct Range {
    std::int64_t address, bytes, page;
  };
  struct Pool {
    std::array<FreeList, kStreams> free;
    std::array<std::vector<Slot>, kStreams> unmapped;  ///< by address
    std::int64_t searches = 0;
  };
  struct Request {
    std::int64_t size;     ///< of the block, rounded
    std::int64_t segment;  ///< to ask from cudaMalloc
    std::uint8_t pool, stream;
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
  void cache(Slot slot);
  void uncache(Slot slot);
  [[nodiscard]] bool is_split(const Block& b) const {
    return b.previous != kNone || b.next != kNone;
  }
  [[nodiscard]] bool collects_garbage() const {
    return allowed_ && config_.garbage_collection_threshold > 0;
  }
  [[nodiscard]] bool has_room(std::int64_t bytes) const {
    return bytes <= capacity_ - stats_.reserved.count();
  }
  void add_reserved(std::int64_t bytes);

  AllocatorConfig config_;
  std::int64_t capacity_;  ///< "without limit" is a number that nothing reaches
  std::int64_t total_;
  std::optional<std::int64_t> allowed_;  ///< by memory_fraction
  std::int64_t next_address_;
  std::vector<Block> blocks_;
  std::vector<Slot> unused_;
  std::array<Pool, 2> pools_;  ///< small, large
  std::vector<Range> ranges_;
  std::vector<Slot> scratch_;
  AllocatorStats stats_;
};

}  // namespace stoker
