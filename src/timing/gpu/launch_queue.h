#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/units.h"
#include "program/program.h"

namespace stoker {

/// A host thread that issues work in order to streams that execute it in order, `depth` launches
/// ahead at most. All times are on one clock that starts at 0.
class LaunchQueue {
 public:
  static constexpr std::size_t kStreams = 4;

  explicit LaunchQueue(std::size_t depth);

  /// The host works for `time` without the device.
  void host_work(Nanos time) { host_ += time; }

  /// The host issues one launch, which runs for `time` after what is before it in its stream, and
  /// not before `not_before`. Returns when it ends.
  Nanos launch(Stream stream, Nanos time, Nanos not_before = Nanos(0));

  /// The device goes on with a kernel that an earlier launch brought (a CUDA graph): it takes no
  /// place in the queue. Returns when it ends.
  Nanos follow(Stream stream, Nanos time, Nanos not_before = Nanos(0));

  /// All clocks go on by `time`: what happened in it is what happened before.
  void skip(Nanos time);
  /// Launches that took a place in the queue.
  [[nodiscard]] std::size_t launches() const { return launches_; }

  /// The host waits until every stream is idle.
  void synchronize();
  /// The host waits until `time`.
  void wait_until(Nanos time) { host_ = host_ > time ? host_ : time; }

  [[nodiscard]] Nanos host() const { return host_; }
  [[nodiscard]] Nanos end_of(Stream stream) const {
    return ends_[static_cast<std::size_t>(stream)];
  }
  /// Time in which the stream had nothing to do because the host had not issued yet.
  [[nodiscard]] Nanos starved(Stream stream) const {
    return starved_[static_cast<std::size_t>(stream)];
  }

 private:
  Nanos host_;
  std::array<Nanos, kStreams> ends_{};
  std::array<Nanos, kStreams> starved_{};
  std::vector<Nanos> ring_;  ///< ends of the last `depth` launches
  std::size_t next_ = 0, launches_ = 0;
};

}  // namespace stoker
