#include "timing/collective/data_parallel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace stoker {
namespace {

/// The backward's clock, which runs slower while a collective is on: `work` is its position on the
/// clock of the one-GPU step.
class Backward {
 public:
  explicit Backward(double contention) : contention_(contention) {}

  /// Moves on to position `work` and returns the time.
  Nanos reach(Nanos work) {
    work = std::max(work, work_);
    // Beside a collective a piece of work takes 1 + contention as long.
    const Nanos beside = std::max(Nanos(0), busy_until_ - time_) / (1 + contention_);
    const Nanos slow = std::min(work - work_, beside);
    time_ += slow * (1 + contention_) + (work - work_ - slow);
    work_ = work;
    return time_;
  }
  /// A collective runs until `time`.
  void busy_until(Nanos time) { busy_until_ = std::max(busy_until_, time); }

 private:
  double contention_;
  Nanos time_, work_, busy_until_;
};

}  // namespace

DataParallelTime data_parallel_time(const LonelyStep& step, const AllReduceModel& all_reduce,
                                    const CollectiveCoefficients& c) {
  DataParallelTime out{step.total, Nanos(0), Nanos(0)};
  if (all_reduce.ranks < 2) return out;
  Backward backward(c.contention);
  Nanos end;
  for (const ReadyBucket& bucket : step.buckets) {
    const Nanos time = all_reduce.time_of(bucket.bytes);
    const Nanos ready = backward.reach(std::min(bucket.ready, step.backward_end));
    end = std::max(ready, end) + time;
    backward.busy_until(end);
    out.communication += time;
  }
  const Nanos computed = backward.reach(step.backward_end);
  const Nanos waited = std::max(Nanos(0), end - computed);
  const Nanos optimizer = step.total - step.backward_end;
  const Nanos total = computed + waited + std::max(Nanos(0), optimizer);
  const Nanos lagged =
      out.communication.count() > 0 ? wait_for_slowest(all_reduce.ranks, total, c) : Nanos(0);
  out.exposed = waited + lagged;
  out.total = total + lagged;
  return out;
}

std::vector<ReadyBucket> even_buckets(Bytes gradients, Nanos begin, Nanos end, Bytes first,
                                      Bytes cap) {
  std::vector<ReadyBucket> buckets;
  const double all = static_cast<double>(gradients.count());
  Bytes done;
  while (done < gradients) {
    const Bytes bytes = std::min(buckets.empty() ? first : cap, gradients - done);
    done += bytes;
    const double share = static_cast<double>(done.count()) / all;
    buckets.push_back({bytes, begin + share * (end - begin)});
    if (bytes.count() <= 0) break;
  }
  return buckets;
}

double slowest_of(int ranks) {
  if (ranks < 2) return 0;
  constexpr double kReach = 9, kStep = 0.01;
  double mean = 0;
  for (double x = -kReach; x <= kReach; x += kStep) {
    const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
    mean += kStep * x * ranks * density * std::pow(below, ranks - 1);
  }
  return mean;
}

}  // namespace stoker
