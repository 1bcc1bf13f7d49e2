#include "input/shared_resource.h"

#include <algorithm>

namespace stoker {

double SharedResource::rate() const {
  const auto n = static_cast<double>(jobs_.size());
  const double crowding = std::clamp(n / capacity_ - 1, 0.0, 1.0);
  return std::min(1.0, capacity_ / n) /
         (1 + slowdown_ * std::max(0.0, in_use() - 1) + oversubscription_ * crowding);
}

double SharedResource::in_use() const {
  return std::min(capacity_, static_cast<double>(jobs_.size()));
}

void SharedResource::advance(double now) {
  if (!jobs_.empty() && now > now_) {
    served_ += (now - now_) * rate();
    busy_ += (now - now_) * in_use();
  }
  now_ = std::max(now_, now);
}

void SharedResource::start(double now, std::uint32_t job, double work) {
  advance(now);
  jobs_.emplace(served_ + std::max(0.0, work), job);
}

double SharedResource::next_end(double now) const {
  if (jobs_.empty()) return std::numeric_limits<double>::infinity();
  const double end = now_ + std::max(0.0, jobs_.top().first - served_) / rate();
  return std::max(now, end);
}

std::uint32_t SharedResource::finish(double now) {
  advance(now);
  const auto [end, job] = jobs_.top();
  jobs_.pop();
  served_ = std::max(served_, end);
  return job;
}

double SharedResource::busy(double now) const {
  return busy_ + (jobs_.empty() ? 0 : std::max(0.0, now - now_) * in_use());
}

}  // namespace stoker
