#include "diagnosis/timeline/sleep_split.h"

#include <algorithm>
#include <numeric>

#include "diagnosis/timeline/times.h"

namespace stoker {
namespace {

constexpr auto kRunningIndex = static_cast<std::size_t>(WaitKind::kRunning);
constexpr auto kUnknownIndex = static_cast<std::size_t>(WaitKind::kUnknown);
/// Looks that the run so far stands for in an interval: a prior that a few looks outweigh.
constexpr double kPriorLooks = 0.5;
/// Seconds in the run queue that may be taken for granted before the kernel tells of them: a
/// throttled thread's are never told by newer kernels.
constexpr double kMostAhead = 2;
/// Share of what was seen before that is kept from interval to interval, so that a job's phases are
/// followed: half is forgotten after 34 intervals.
constexpr double kMemory = 0.98;

}  // namespace

double ThreadSeconds::all_asleep() const {
  return std::accumulate(asleep.begin(), asleep.end(), 0.0);
}

ThreadSeconds& ThreadSeconds::operator+=(const ThreadSeconds& other) {
  cpu += other.cpu;
  queued += other.queued;
  for (std::size_t i = 0; i < kWaitKinds; ++i) asleep[i] += other.asleep[i];
  return *this;
}

ThreadSeconds SleepSplit::between(const ThreadTimes& before, const ThreadTimes& after,
                                  const Looks& earlier, const Looks& later, double seconds) {
  ThreadSeconds out;
  // The kernel counts a thread's turn when it ends: a sum above the interval belongs to the one
  // before, and is cut here.
  out.cpu = std::min(seconds, grown_seconds(before.cpu_ns, after.cpu_ns));
  const double told = grown_seconds(before.queued_ns, after.queued_ns);
  const double foreseen = std::min(ahead_, told);
  ahead_ -= foreseen;
  out.queued = std::min(seconds - out.cpu, told - foreseen);
  double asleep = std::max(0.0, seconds - out.cpu - out.queued);
  // The kernel tells of the run queue when a thread leaves it. One that was ready at every look was
  // in it all along, and is told so later.
  if (later.all() > earlier.all() && later.asleep() == earlier.asleep()) {
    out.queued += asleep;
    ahead_ = std::min(kMostAhead, ahead_ + asleep);
    asleep = 0;
  }

  std::array<double, kWaitKinds> seen{};
  for (std::size_t i = 0; i < kWaitKinds; ++i) {
    usual_[i] *= kMemory;
    if (i == kRunningIndex || later.count[i] < earlier.count[i]) continue;
    seen[i] = static_cast<double>(later.count[i] - earlier.count[i]);
    usual_[i] += seen[i];
  }
  // Where the kernel shows any sleeping place, one that it did not show belongs to a thread that
  // was waking up at that moment.
  const double shown = std::accumulate(usual_.begin(), usual_.end(), 0.0) - usual_[kUnknownIndex];
  if (shown > 0) seen[kUnknownIndex] = usual_[kUnknownIndex] = 0;
  const double usual = std::accumulate(usual_.begin(), usual_.end(), 0.0);
  const double looks = std::accumulate(seen.begin(), seen.end(), 0.0);
  if (usual <= 0) {
    out.asleep[static_cast<std::size_t>(WaitKind::kUnknown)] = asleep;
    return out;
  }
  for (std::size_t i = 0; i < kWaitKinds; ++i) {
    const double weight = (seen[i] + kPriorLooks * usual_[i] / usual) / (looks + kPriorLooks);
    out.asleep[i] = asleep * weight;
  }
  return out;
}

}  // namespace stoker
