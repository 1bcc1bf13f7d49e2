#include "diagnosis/timeline/worker_track.h"

#include <algorithm>

#include "diagnosis/timeline/times.h"

namespace stoker {
namespace {

constexpr std::size_t kMostCosts = 1024;

}  // namespace

void CostSample::add(const MessageCost& cost) {
  if (seen_++ % stride_ != 0) return;
  if (kept_.size() == kMostCosts) {
    std::vector<MessageCost> half;
    for (std::size_t i = 0; i < kept_.size(); i += 2) half.push_back(kept_[i]);
    kept_ = std::move(half);
    stride_ *= 2;
  }
  kept_.push_back(cost);
}

WorkerTrack::WorkerTrack(const ProcessSample& first, bool born_here) : before_(first) {
  if (!born_here) return;
  before_.messages = 0;
  since_.cpu = static_cast<double>(first.leader.cpu_ns + first.others.cpu_ns) / kNanosASecond;
}

WorkerSeconds WorkerTrack::add(const ProcessSample& sample, double seconds, CostSample& costs) {
  const ThreadSeconds passed =
      split_.between(before_.leader, sample.leader, before_.looks, sample.looks, seconds);
  WorkerSeconds w;
  w.alive = seconds;
  w.cpu = passed.cpu;
  w.queued = passed.queued;
  w.helpers_cpu =
      static_cast<double>(std::max<std::int64_t>(0, sample.others.cpu_ns - before_.others.cpu_ns)) /
      kNanosASecond;
  w.idle = passed.in(WaitKind::kPoll);
  w.storage = passed.in(WaitKind::kDisk) + passed.in(WaitKind::kNetworkStorage);
  w.locked = passed.in(WaitKind::kFutex) + passed.in(WaitKind::kPipe);
  w.sleeps = passed.all_asleep() - w.idle - w.storage - w.locked;
  total_ += w;
  since_.cpu += w.cpu + w.helpers_cpu;
  since_.wait += w.storage + w.sleeps;
  grown_ = static_cast<double>(std::max<std::int64_t>(0, sample.messages - before_.messages));
  if (grown_ > 0) {
    since_.messages = grown_;
    costs.add(since_);
    since_ = {};
  }
  const auto more = [](std::int64_t before, std::int64_t after) {
    return static_cast<double>(std::max<std::int64_t>(0, after - before));
  };
  read_ = {more(before_.read_chars, sample.read_chars), more(before_.read_calls, sample.read_calls),
           more(before_.read_bytes, sample.read_bytes)};
  before_ = sample;
  return w;
}

}  // namespace stoker
