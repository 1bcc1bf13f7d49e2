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
  since_.cpu = at_seconds(saturating_sum(first.leader.cpu_ns, first.others.cpu_ns));
}

WorkerSeconds WorkerTrack::add(const ProcessSample& sample, double seconds, CostSample& costs) {
  const ThreadSeconds passed =
      split_.between(before_.leader, sample.leader, before_.looks, sample.looks, seconds);
  WorkerSeconds w;
  w.alive = seconds;
  w.cpu = passed.cpu;
  w.queued = passed.queued;
  w.helpers_cpu = grown_seconds(before_.others.cpu_ns, sample.others.cpu_ns);
  w.idle = passed.in(WaitKind::kPoll);
  w.storage = passed.in(WaitKind::kDisk) + passed.in(WaitKind::kNetworkStorage);
  w.locked = passed.in(WaitKind::kFutex) + passed.in(WaitKind::kPipe);
  w.sleeps = passed.all_asleep() - w.idle - w.storage - w.locked;
  total_ += w;
  since_.cpu += w.cpu + w.helpers_cpu;
  since_.wait += w.storage + w.sleeps;
  grown_ = stoker::grown(before_.messages, sample.messages);
  if (grown_ > 0) {
    since_.messages = grown_;
    costs.add(since_);
    since_ = {};
  }
  read_ = {stoker::grown(before_.read_chars, sample.read_chars),
           stoker::grown(before_.read_calls, sample.read_calls),
           stoker::grown(before_.read_bytes, sample.read_bytes)};
  before_ = sample;
  return w;
}

}  // namespace stoker
