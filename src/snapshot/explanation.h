#pragma once

#include <optional>
#include <string>
#include <vector>

#include "snapshot/live_memory.h"
#include "snapshot/snapshot_replay.h"

namespace stoker {

struct ExplainOptions {
  /// Absent: the failure if there was one, else the peak if there is a trace, else the end.
  std::optional<MemoryMoment> moment;
  /// Absent: the device that reserves most.
  std::optional<std::size_t> device;
  /// The device's memory; the replay of expandable segments needs it.
  std::optional<Bytes> device_memory;
};

/// The best max_split_size_mb of those that were tried.
struct SplitLimit {
  std::int64_t mebibytes = 0;
  Bytes reserved_peak;
};

/// What a snapshot says about one device, ready to be written down.
struct SnapshotExplanation {
  std::size_t device = 0;
  std::vector<std::size_t> other_devices;
  LiveMemory live;
  TraceCoverage coverage;
  Bytes reserved_peak;
  SnapshotReplay replay;
  /// Reserved peak had expandable_segments been on, by simulation; only of traces from the start
  /// that did without and that the simulator repeats.
  std::optional<Bytes> reserved_peak_expandable;
  /// Reserved peak with a limit to what may be split, by simulation; absent where one was set.
  std::optional<SplitLimit> split_limit;
  std::vector<std::string> why;      ///< sentences
  std::vector<std::string> advice;   ///< what to do, sentences
  std::vector<std::string> missing;  ///< what the file does not tell, with the cure
};

[[nodiscard]] Result<SnapshotExplanation> explain_snapshot(const Snapshot& snapshot,
                                                           const ExplainOptions& options,
                                                           const std::string& where);

}  // namespace stoker
