#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "memory/cuda/allocator.h"
#include "snapshot/snapshot.h"

namespace stoker {

/// What decides among free blocks of equal size.
enum class TieRule : std::uint8_t {
  kOldestSegment,  ///< newer PyTorch: the order in which segments were made
  kLowestAddress   ///< older PyTorch: the addresses that CUDA gave
};
[[nodiscard]] std::string_view name_of(TieRule rule);

struct SnapshotReplayOptions {
  /// What the device could give, if it is known. Then the simulator must also find by itself when
  /// PyTorch gave memory back; else that is taken from the trace, and only what was given back is
  /// checked.
  DeviceMemory device;
  std::optional<double> memory_fraction;
};

struct SnapshotReplay {
  /// The trace begins with an empty allocator, so that every address can be checked.
  bool from_start = false;
  /// Why nothing was replayed; empty when it was.
  std::string not_replayed;
  std::int64_t events = 0;                     ///< of the trace
  std::int64_t compared = 0;                   ///< replayed with the same outcome
  std::int64_t allocations = 0, segments = 0;  ///< among them
  TieRule rule = TieRule::kOldestSegment;      ///< under which it went farthest
  /// The segments and blocks at the end are the snapshot's.
  bool same_end = false;
  /// The first difference, with its event; empty when there is none.
  std::string difference;
  AllocatorStats stats;                      ///< of the simulator at the end
  std::optional<OutOfMemory> first_failure;  ///< the numbers of its first OutOfMemoryError
  /// Partial releases (max_split_size, garbage collection) that were taken from the trace.
  std::int64_t releases_taken_over = 0;

  [[nodiscard]] bool identical() const {
    return not_replayed.empty() && difference.empty() && same_end;
  }
};

/// Feeds the requests of a recorded trace through CachingAllocator under the snapshot's settings
/// and compares what it does with what PyTorch did: the segments asked of the device, in order,
/// with their sizes; each block's place in its segment; failures; and the segments and blocks at
/// the end. When the trace was recorded from an empty allocator on, this is an exact test of the
/// simulator.
[[nodiscard]] SnapshotReplay replay_snapshot(const Snapshot& snapshot, std::size_t device,
                                             const SnapshotReplayOptions& options = {});

}  // namespace stoker
