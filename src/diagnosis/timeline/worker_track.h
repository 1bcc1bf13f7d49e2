#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/timeline/job_timeline.h"
#include "diagnosis/timeline/sleep_split.h"
#include "observe/sample/sample.h"

namespace stoker {

/// What a worker used for some messages, as they came.
struct MessageCost {
  double cpu = 0, wait = 0, messages = 0;
};

/// A bounded number of costs that stand for all: when it is full, every second is dropped and only
/// every second is taken from then on.
class CostSample {
 public:
  void add(const MessageCost& cost);
  [[nodiscard]] const std::vector<MessageCost>& all() const { return kept_; }

 private:
  std::vector<MessageCost> kept_;
  std::int64_t seen_ = 0, stride_ = 1;
};

/// One worker process from sample to sample.
class WorkerTrack {
 public:
  WorkerTrack() = default;
  /// `first` is its first sample. A worker that began while it was watched has all of its counters
  /// from then on.
  WorkerTrack(const ProcessSample& first, bool born_here);

  /// What passed in `seconds` until this sample; finished messages go to `costs`.
  WorkerSeconds add(const ProcessSample& sample, double seconds, CostSample& costs);

  [[nodiscard]] const WorkerSeconds& total() const { return total_; }
  [[nodiscard]] double messages() const { return static_cast<double>(before_.messages); }
  [[nodiscard]] double grown() const { return grown_; }  ///< messages in the last interval
  /// What it read in the last interval: by read(2), in calls, and from storage.
  struct Read {
    double chars = 0, calls = 0, bytes = 0;
  };
  [[nodiscard]] const Read& read() const { return read_; }

 private:
  SleepSplit split_;
  ProcessSample before_;
  WorkerSeconds total_;
  MessageCost since_;  ///< since the last message
  double grown_ = 0;
  Read read_;
};

}  // namespace stoker
