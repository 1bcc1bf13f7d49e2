#pragma once

#include <array>
#include <cstddef>

#include "diagnosis/timeline/job_timeline.h"

namespace stoker {

/// Finds the times in which a loop did something else than steps: validation, logging, saving a
/// little. It then asks for no batch for far longer than a step of it takes, and does not wait for
/// one. Steps are known by their rhythm: each asks for a batch.
///
/// At the end of an epoch a loop consumes what it has asked for without asking for more, and asks
/// for as much at once when the next begins: so many steps are no stall.
class StallTrack {
 public:
  /// What passed in one interval: `asked` batches, at its end, after `job`.
  void add(double asked, double window, bool new_workers, const JobSeconds& job);

  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] double longest() const { return longest_; }
  [[nodiscard]] int count() const { return count_; }
  /// Seconds that a loop stood still around checkpoints: what it prepares on a core before it
  /// writes, and the disk that it waits for afterwards, belong to them.
  [[nodiscard]] double around_saves() const { return around_saves_; }
  /// Seconds that were judged: those before a rhythm was known, and since the last batch, are not.
  [[nodiscard]] double judged() const { return judged_; }
  /// Seconds of a usual step; 0: too few were seen.
  [[nodiscard]] double usual() const;

 private:
  static constexpr std::size_t kBins = 64;
  std::array<double, kBins>
      gaps_{};  ///< batches by the time between them, a step 1.2 times another
  double batches_ = 0;
  /// Seconds since a batch was asked for; of these by the loop itself, and saving.
  double since_ = 0, own_ = 0, saved_ = 0;
  bool new_workers_ = false;
  double seconds_ = 0, longest_ = 0, around_saves_ = 0, judged_ = 0;
  int count_ = 0;
};

}  // namespace stoker
