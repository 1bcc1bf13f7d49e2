#include "timing/gpu/launch_queue.h"

#include <algorithm>
#include <utility>

namespace stoker {

LaunchQueue::LaunchQueue(std::size_t depth) : ring_(std::max<std::size_t>(1, depth)) {}

Nanos LaunchQueue::launch(Stream stream, Nanos time, Nanos not_before) {
  // The slot that this launch takes is free once the launch `depth` before it has ended.
  host_ = std::max(host_, ring_[next_]);
  ++launches_;
  ring_[next_] = follow(stream, time, not_before);
  return ring_[std::exchange(next_, next_ + 1 == ring_.size() ? 0 : next_ + 1)];
}

Nanos LaunchQueue::follow(Stream stream, Nanos time, Nanos not_before) {
  const auto s = static_cast<std::size_t>(stream);
  const Nanos ready = std::max(ends_[s], not_before);
  const Nanos start = std::max(ready, host_);
  starved_[s] += start - ready;
  ends_[s] = start + std::max(Nanos(0), time);
  return ends_[s];
}

void LaunchQueue::skip(Nanos time) {
  host_ += time;
  for (Nanos& end : ends_) end += time;
  for (Nanos& end : ring_) end += time;
}

void LaunchQueue::synchronize() {
  host_ = std::max(host_, *std::max_element(ends_.begin(), ends_.end()));
}

}  // namespace stoker
