#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "snapshot/snapshot.h"

namespace stoker {

enum class MemoryMoment : std::uint8_t {
  kPeak,         ///< most allocated bytes of the trace, the first time
  kOutOfMemory,  ///< the last failure of the trace
  kEnd           ///< when the snapshot was taken
};
[[nodiscard]] std::string_view name_of(MemoryMoment moment);

/// Live blocks that the same line of the user's code allocated.
struct MemoryHolder {
  std::string where;         ///< "model/block.py:12 forward", or why there is no line
  StackId stack = kNoStack;  ///< of its largest block
  Bytes bytes;               ///< whole blocks
  Bytes requested;
  std::int64_t blocks = 0;
  Bytes largest;
};

/// Idle memory of the allocator at a moment.
struct IdleMemory {
  Bytes bytes;    ///< reserved and not in use
  Bytes whole;    ///< in segments that hold nothing at all: can be given back
  Bytes largest;  ///< the largest unbroken piece
  std::int64_t pieces = 0;
};

/// A failed request and what stood in its way.
struct MemoryFailure {
  Bytes requested;    ///< rounded to the size of a block
  Bytes asked;        ///< what was asked of the device: a segment
  Bytes device_free;  ///< by CUDA; negative: not recorded
  IdleMemory usable;  ///< idle in the stream and pool of the request
  std::string where;  ///< line of the user's code
  std::string why;    ///< one sentence
};

/// What one device held at one moment.
struct LiveMemory {
  MemoryMoment moment = MemoryMoment::kEnd;
  std::int64_t event = -1;  ///< of the trace, after which this holds; -1: before the first
  std::int64_t time_us = 0;
  Bytes reserved;
  Bytes allocated;  ///< whole blocks, as torch.cuda.memory_allocated
  Bytes requested;  ///< by the program
  Bytes pending;    ///< freed by the program, still in use by another stream
  IdleMemory idle;
  Bytes
      astray;  ///< of the allocated ones, in no known segment: the trace does not fit the segments
  std::int64_t blocks_astray = 0;
  std::vector<MemoryHolder> holders;  ///< largest first; pending blocks among them
  std::optional<MemoryFailure> failure;
};

/// How far the trace of a device reaches, and how well it fits the segments.
struct TraceCoverage {
  std::int64_t events = 0, allocations = 0, frees = 0, failures = 0;
  Bytes reserved_before;           ///< before its first event
  std::int64_t blocks_before = 0;  ///< in use before its first event
  Bytes bytes_before;
  std::int64_t contradictions = 0;  ///< events that cannot follow from those before, skipped
  [[nodiscard]] bool from_start() const {
    return reserved_before.count() == 0 && blocks_before == 0;
  }
};

/// Walks the trace of one device. What happened before its first event is worked out backwards from
/// the segments at its end, so a ring buffer that has lost its beginning is no obstacle.
class SnapshotHistory {
 public:
  /// Borrows the snapshot.
  SnapshotHistory(const Snapshot& snapshot, std::size_t device);

  [[nodiscard]] const TraceCoverage& coverage() const { return coverage_; }
  [[nodiscard]] bool has(MemoryMoment moment) const;
  /// `moment` must be there.
  [[nodiscard]] LiveMemory at(MemoryMoment moment) const;
  /// Most bytes that were reserved, and at which event.
  [[nodiscard]] Bytes reserved_peak() const { return reserved_peak_; }

 private:
  const Snapshot& snapshot_;
  std::size_t device_;
  TraceCoverage coverage_;
  std::int64_t peak_event_ = -1, failure_event_ = -1;
  Bytes reserved_peak_;
};

/// The line of the user's code that a stack comes from: the innermost Python frame outside PyTorch.
[[nodiscard]] std::string user_line(const Snapshot& snapshot, StackId stack);

}  // namespace stoker
