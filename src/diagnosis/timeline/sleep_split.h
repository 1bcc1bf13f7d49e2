#pragma once

#include <array>
#include <cstdint>

#include "observe/sample/sample.h"

namespace stoker {

/// Seconds by what a thread did in them. Those on a core and in the run queue are the kernel's own
/// count; those asleep are the rest, divided by where looks found the thread asleep.
struct ThreadSeconds {
  double cpu = 0, queued = 0;
  std::array<double, kWaitKinds> asleep{};  ///< that of kRunning stays 0

  [[nodiscard]] double in(WaitKind kind) const { return asleep[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] double all_asleep() const;
  [[nodiscard]] double all() const { return cpu + queued + all_asleep(); }
  ThreadSeconds& operator+=(const ThreadSeconds& other);
};

/// Turns two samples of one thread into seconds. The sum of many intervals is far better known than
/// by looks alone, because looks decide only how sleep is divided.
class SleepSplit {
 public:
  /// What passed between two samples `seconds` apart.
  ThreadSeconds between(const ThreadTimes& before, const ThreadTimes& after, const Looks& earlier,
                        const Looks& later, double seconds);

 private:
  /// Sleeping looks so far: what an interval without any is divided by.
  std::array<double, kWaitKinds> usual_{};
  double ahead_ = 0;  ///< seconds in the run queue that the kernel has not told of yet
};

}  // namespace stoker
