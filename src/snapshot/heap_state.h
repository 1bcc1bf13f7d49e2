#pragma once

// Internal to src/snapshot: the heap of one device as the trace goes, forwards and backwards.

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "snapshot/live_memory.h"

namespace stoker {

struct LiveBlock {
  std::int64_t requested = 0;
  StackId stack = kNoStack;
  std::uint16_t stream = 0, pool = 0;
  bool pending = false;
};

struct HeapSegment {
  std::int64_t size = 0;
  std::uint16_t stream = 0, pool = 0;
  bool expandable = false;
};

/// Segments and blocks in use at one moment of a trace.
class HeapState {
 public:
  explicit HeapState(const AllocatorConfig& config) : config_(&config) {}

  /// Takes the state at the end of the trace, as the snapshot has it.
  void load_end(const Snapshot& snapshot, std::size_t device);
  /// The state after the event. False when it cannot follow from this one; then nothing changes.
  bool apply(const TraceEvent& event);
  /// The state before the event, from the one after it.
  bool undo(const TraceEvent& event);

  [[nodiscard]] std::int64_t reserved() const { return reserved_; }
  /// Bytes of blocks in use and not pending, rounded to whole blocks but without slack.
  [[nodiscard]] std::int64_t allocated() const { return allocated_; }
  [[nodiscard]] const std::unordered_map<std::int64_t, LiveBlock>& blocks() const {
    return blocks_;
  }
  [[nodiscard]] const std::map<std::int64_t, HeapSegment>& segments() const { return segments_; }
  /// Bytes of the block for a request, slack not counted.
  [[nodiscard]] std::int64_t rounded(std::int64_t requested) const;
  /// Bytes of the block with what lies behind it and nobody else can use: `room` is the space from
  /// its beginning to the next block or the end of the segment.
  [[nodiscard]] std::int64_t with_slack(const HeapSegment& segment, std::int64_t requested,
                                        std::int64_t room) const;

 private:
  bool add_memory(std::int64_t address, const HeapSegment& segment);
  bool remove_memory(std::int64_t address, std::int64_t size, bool expandable);
  bool add_block(std::int64_t address, const LiveBlock& block);
  bool remove_block(std::int64_t address);
  bool set_pending(std::int64_t address, bool pending);
  void join_next(std::map<std::int64_t, HeapSegment>::iterator segment);

  const AllocatorConfig* config_;
  std::map<std::int64_t, HeapSegment> segments_;
  std::unordered_map<std::int64_t, LiveBlock> blocks_;
  std::int64_t reserved_ = 0, allocated_ = 0;
};

/// The heap before the first event of the device's trace, worked out backwards from its end;
/// without a trace it is the end. Events that cannot be undone are counted.
[[nodiscard]] HeapState heap_before(const Snapshot& snapshot, std::size_t device,
                                    std::int64_t& contradictions);

}  // namespace stoker
