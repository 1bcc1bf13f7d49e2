// The memory events of a profile in the simulator. The trace is a piece out of the middle of a run:
// what it frees without having allocated was there before, and what it does not free takes that
// place when the piece is played again.

#include <algorithm>
#include <map>
#include <unordered_map>

#include "memory/cuda/allocator.h"
#include "snapshot/kineto_memory.h"

namespace stoker {
namespace {

constexpr std::int64_t kBefore = -1;

/// For every free the event that allocated the block, or kBefore. By address where the trace tells
/// it; else the youngest block of that size, as autograd frees.
std::vector<std::int64_t> origins_of(const KinetoMemory& memory) {
  std::vector<std::int64_t> origin(memory.events.size(), kBefore);
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> live;
  for (std::size_t i = 0; i < memory.events.size(); ++i) {
    const KinetoMemoryEvent& e = memory.events[i];
    auto& blocks = live[{std::abs(e.bytes), e.address}];
    if (e.bytes > 0) {
      blocks.push_back(static_cast<std::int64_t>(i));
    } else if (!blocks.empty()) {
      origin[i] = blocks.back();
      blocks.pop_back();
    }
  }
  return origin;
}

/// Blocks of one size in the order of their allocation; both ends in constant time on average.
class WaitingBlocks {
 public:
  [[nodiscard]] bool empty() const { return first_ == blocks_.size(); }
  void push(BlockId block) { blocks_.push_back(block); }
  /// The oldest.
  BlockId pop() {
    const BlockId block = blocks_[first_++];
    if (2 * first_ >= blocks_.size()) {
      blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return block;
  }

 private:
  std::vector<BlockId> blocks_;
  std::size_t first_ = 0;
};

/// The trace, played again and again in one allocator.
class Player {
 public:
  Player(const KinetoMemory& memory, const KinetoComparisonOptions& options)
      : memory_(memory), origin_(origins_of(memory)), allocator_(options.allocator) {
    // What the trace frees without having allocated is there already.
    for (std::size_t i = 0; i < memory.events.size(); ++i) {
      const std::int64_t bytes = memory.events[i].bytes;
      if (bytes < 0 && origin_[i] == kBefore) allocate_before(-bytes);
    }
  }

  /// Once through; with a result, comparing.
  void play(KinetoComparison* result) {
    std::unordered_map<std::int64_t, std::int64_t> freed_at, freed_at_traced;  // address -> event
    std::map<std::int64_t, BlockId> live;
    const std::int64_t mallocs = allocator_.stats().device_mallocs;
    const std::int64_t start = allocator_.stats().allocated.count();
    std::optional<std::int64_t> traced_start;
    for (std::size_t i = 0; i < memory_.events.size(); ++i) {
      const KinetoMemoryEvent& e = memory_.events[i];
      const auto id = static_cast<std::int64_t>(i);
      if (e.total_allocated && !traced_start) traced_start = *e.total_allocated - e.bytes;
      if (e.bytes > 0) {
        const BlockId block = *allocator_.allocate(Bytes{e.bytes}, Stream::kCompute);
        live[id] = block;
        if (result) compare_block(e, block, freed_at, freed_at_traced, *result);
      } else {
        const BlockId block = take(i, live);
        freed_at[allocator_.address_of(block).count()] = id;
        if (e.address != 0) freed_at_traced[e.address] = id;
        allocator_.free(block);
      }
      if (result && e.total_allocated) {
        ++result->with_total;
        result->same_total +=
            allocator_.stats().allocated.count() - start == *e.total_allocated - *traced_start;
      }
    }
    for (const auto& [event, block] : live) before_[memory_.events[index(event)].bytes].push(block);
    if (result) result->late_segments = allocator_.stats().device_mallocs - mallocs;
  }

  [[nodiscard]] Bytes reserved() const { return allocator_.stats().reserved; }

 private:
  static std::size_t index(std::int64_t event) { return static_cast<std::size_t>(event); }

  void allocate_before(std::int64_t bytes) {
    before_[bytes].push(*allocator_.allocate(Bytes{bytes}, Stream::kCompute));
  }

  /// The block that the free at `i` is for.
  BlockId take(std::size_t i, std::map<std::int64_t, BlockId>& live) {
    if (origin_[i] != kBefore) {
      const auto found = live.find(origin_[i]);
      const BlockId block = found->second;
      live.erase(found);
      return block;
    }
    auto& blocks = before_[-memory_.events[i].bytes];
    if (blocks.empty()) allocate_before(-memory_.events[i].bytes);
    return blocks.pop();
  }

  void compare_block(const KinetoMemoryEvent& e, BlockId block,
                     const std::unordered_map<std::int64_t, std::int64_t>& freed_at,
                     const std::unordered_map<std::int64_t, std::int64_t>& freed_at_traced,
                     KinetoComparison& result) const {
    ++result.allocations;
    result.same_size += allocator_.size_of(block).count() == e.bytes;
    const auto traced = freed_at_traced.find(e.address);
    if (e.address == 0 || traced == freed_at_traced.end()) return;
    ++result.reuses;
    const auto simulated = freed_at.find(allocator_.address_of(block).count());
    result.same_reuse += simulated != freed_at.end() && simulated->second == traced->second;
  }

  const KinetoMemory& memory_;
  std::vector<std::int64_t> origin_;
  CachingAllocator allocator_;
  std::unordered_map<std::int64_t, WaitingBlocks> before_;  ///< by bytes
};

}  // namespace

KinetoSummary summarize(const KinetoMemory& memory) {
  KinetoSummary summary;
  const std::vector<std::int64_t> origin = origins_of(memory);
  std::int64_t level = 0;
  std::optional<std::int64_t> total;
  for (std::size_t i = 0; i < memory.events.size(); ++i) {
    const KinetoMemoryEvent& e = memory.events[i];
    ++(e.bytes > 0 ? summary.allocations : summary.frees);
    if (e.bytes < 0 && origin[i] == kBefore) {
      ++summary.freed_from_before;
      summary.bytes_from_before += Bytes{-e.bytes};
    }
    level += e.bytes;
    if (Bytes{level} > summary.rise) {
      summary.rise = Bytes{level};
      summary.peak_event = static_cast<std::int64_t>(i);
    }
    if (e.total_allocated) {
      if (total && *total + e.bytes != *e.total_allocated) ++summary.total_mismatches;
      total = e.total_allocated;
      summary.allocated_peak =
          std::max(summary.allocated_peak.value_or(Bytes{}), Bytes{*e.total_allocated});
    }
    if (e.total_reserved) {
      summary.reserved_peak =
          std::max(summary.reserved_peak.value_or(Bytes{}), Bytes{*e.total_reserved});
    }
  }
  summary.kept = summary.allocations - (summary.frees - summary.freed_from_before);
  return summary;
}

KinetoComparison compare_with_kineto(const KinetoMemory& memory,
                                     const KinetoComparisonOptions& options) {
  KinetoComparison result;
  Player player(memory, options);
  for (int pass = 1; pass < options.passes; ++pass) player.play(nullptr);
  player.play(&result);
  result.reserved = player.reserved();
  result.traced_reserved = summarize(memory).reserved_peak;
  return result;
}

}  // namespace stoker
