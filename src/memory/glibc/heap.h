#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "base/units.h"
#include "memory/cuda/allocator.h"
#include "memory/glibc/page_set.h"

namespace stoker {

/// What malloc goes by: the defaults of glibc on a 64-bit machine (malloc/malloc.c).
struct HeapRules {
  /// From here on a request that no free chunk serves gets pages of its own (mmap). Freeing such a
  /// chunk raises the threshold to its size, which makes the next one of that size come from the
  /// heap.
  Bytes mmap_threshold{128 << 10};
  Bytes largest_mmap_threshold{32 << 20};
  /// Asked from the system beyond what is needed, and left at the top when the top is given back.
  Bytes top_pad{128 << 10};
  Bytes page{4096};
  /// Share of the fragments beside tensors that a small object of the process takes and keeps. Then
  /// neighbouring tensors never join again when they are free, nor does a hole serve a tensor of
  /// its old size: what fragments the heap of a real process. 0: none, malloc alone.
  double kept_fragments = 0;
};

/// The heap that PyTorch's CPU tensors come from: glibc's malloc (2.26 to 2.37) as
/// c10::alloc_cpu calls it, posix_memalign(64, bytes). Says which pages are resident: those that
/// were written once stay until the top of the heap is trimmed or a mapping is given back. Rules,
/// sources and what is simplified: docs/models/cpu-memory.md.
///
/// One arena, which is what tensors of the training thread use (PyTorch's backward of CPU tensors
/// runs on the calling thread). The small objects of the process between the tensors are there as a
/// share of fragments (HeapRules::kept_fragments) only, and the thread's cache of small chunks is
/// full, as it is in a process that has run for a while.
///
/// AllocatorStats read as for a GPU: `allocated` bytes of chunks in use, `reserved` resident bytes,
/// `requested` bytes of tensors. Deterministic; one thread; copying is a snapshot.
class Heap {
 public:
  explicit Heap(const HeapRules& rules = {}, const DeviceMemory& memory = {});

  /// A chunk for `requested` > 0 bytes, all of them written at once. Fails when more than the
  /// capacity would be resident.
  [[nodiscard]] tl::expected<BlockId, OutOfMemory> allocate(Bytes requested, Stream = {});
  void free(BlockId chunk);
  void reset_peaks();
  /// Nothing of the kind is called on a CPU.
  void empty_cache() {}

  [[nodiscard]] const AllocatorStats& stats() const { return stats_; }
  [[nodiscard]] Bytes size_of(BlockId chunk) const {
    return Bytes{chunks_[static_cast<std::size_t>(chunk)].size};
  }
  /// Bytes of pages that were resident for the first time, or again after they were given back;
  /// each was a page fault. Only grows.
  [[nodiscard]] Bytes fresh() const { return Bytes{fresh_}; }
  [[nodiscard]] Bytes mmap_threshold() const { return Bytes{mmap_threshold_}; }

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = 0xffffffff;
  /// kFast: in a fast bin, which keeps neighbours apart until it is emptied.
  enum class State : std::uint8_t { kUsed, kMapped, kFast, kUnsorted, kBinned, kTop };

  struct Chunk {
    std::int64_t address = 0, size = 0;  ///< with its header; of a mapping: all its pages
    std::int64_t requested = 0;
    std::int64_t touched = 0;  ///< bytes resident, of a mapping
    Slot previous = kNone, next = kNone;
    State state = State::kUsed;
  };

  [[nodiscard]] Slot take(std::int64_t size);
  [[nodiscard]] Slot take_unsorted(std::int64_t size);
  [[nodiscard]] Slot take_best_fit(std::int64_t size);
  [[nodiscard]] Slot take_from_top(std::int64_t size);
  [[nodiscard]] Slot map_pages(std::int64_t size);
  void grow_top(std::int64_t size);
  [[nodiscard]] Slot align(Slot slot, std::int64_t size);

  void release(Slot slot);
  void release_fragment(Slot slot);
  std::int64_t coalesce(Slot slot);
  void consolidate();
  void trim();
  void unmap(Slot slot);

  void bin(Slot slot);
  void unlink(Slot slot);
  /// Cuts `slot` behind its first `size` bytes; the rest is the new chunk that comes back.
  Slot split(Slot slot, std::int64_t size);
  void merge_next(Slot slot);
  [[nodiscard]] Slot new_slot();
  void drop_slot(Slot slot);
  void touch(Slot slot);
  void add_resident(std::int64_t bytes);

  HeapRules rules_;
  DeviceMemory memory_;
  std::int64_t mmap_threshold_, trim_threshold_;
  std::vector<Chunk> chunks_;
  std::vector<Slot> unused_;
  Slot top_;
  std::vector<Slot> fast_;
  std::vector<Slot> unsorted_;  ///< oldest first
  /// By size: within one size the order in which malloc takes them, last first.
  std::map<std::int64_t, std::vector<Slot>> bins_;
  PageSet pages_;  ///< of the heap proper, from its begin
  std::int64_t fresh_ = 0;
  std::uint32_t random_ = 1;
  AllocatorStats stats_;
};

}  // namespace stoker
