#include "timing/step_replay.h"

#include <algorithm>
#include <cmath>

#include "timing/launch_queue.h"

namespace stoker {
namespace {

/// Enough for the host's lead to fill the queue in all but contrived cases.
constexpr int kMostIterations = 16;
constexpr int kLeastIterations = 3;
constexpr double kSteady = 1e-3;  ///< relative difference of two iterations that counts as none

class Replay {
 public:
  Replay(const Program& program, const std::vector<Nanos>& times, const ReplaySettings& settings)
      : program_(program), times_(times), settings_(settings), queue_(settings.queue_depth) {}

  ReplayedIteration run(bool first) {
    now_ = {};
    const double begin = end_;
    const double starved_before = queue_.starved(Stream::kCompute);
    batch_ready_ = next_batch_ready_;
    last_source_ = Kernel::kSynthesized;
    for (const Instruction& in : program_.iteration) {
      if (in.when == When::kFirst && !first) continue;
      if (in.when == When::kLater && first) continue;
      execute(in);
    }
    work(settings_.host.step_us);
    // A step without an optimizer still ends with the reduced gradients.
    await_collectives();
    end_ = std::max(end_, queue_.end_of(Stream::kCompute));
    now_.starved = queue_.starved(Stream::kCompute) - starved_before;
    // With nothing on the device, or a host that only waits, the host's clock decides.
    if (now_.device == 0) end_ = std::max(end_, queue_.host());
    now_.total = end_ - begin;
    return now_;
  }

 private:
  void work(double microseconds) {
    const double time = microseconds * 1e3 / settings_.core_speed;
    queue_.host_work(time);
    now_.host += time;
  }

  void execute(const Instruction& in) {
    switch (in.kind) {
      case InstructionKind::kLaunch:
        if (in.value < program_.kernels.size())
          launch(program_.kernels[in.value], times_[in.value].count());
        break;
      case InstructionKind::kSynchronize:
        queue_.synchronize();
        work(settings_.host.synchronize_us);
        break;
      case InstructionKind::kBucketReady:
        if (in.value < program_.buckets.size()) reduce(program_.buckets[in.value]);
        break;
      case InstructionKind::kAllocate:
      case InstructionKind::kFree:
      case InstructionKind::kEmptyCache:
      case InstructionKind::kAwaitCommunication:
      case InstructionKind::kFreePrevious:
        break;  // the allocator's own time is part of a dispatch
    }
  }

  void dispatch(const Kernel& kernel) {
    const HostCoefficients& host = settings_.host;
    const bool same = kernel.source != Kernel::kSynthesized && kernel.source == last_source_;
    last_source_ = kernel.source;
    double cost = host.forward_us;
    if (kernel.phase == StepPhase::kBackward) cost = host.backward_us;
    if (kernel.phase == StepPhase::kOptimizer) cost = host.optimizer_us;
    if (same) cost = host.launch_us;
    cost += host.launch_us * std::max(0, static_cast<int>(kernel.launches) - 1);
    work(cost + host.view_us * kernel.views);
  }

  void launch(const Kernel& kernel, double time) {
    dispatch(kernel);
    if (kernel.kernel_class == KernelClass::kHostToDevice) return copy_in(kernel, time);
    const auto phase = static_cast<std::size_t>(kernel.phase);
    if (kernel.stream != Stream::kCompute) {
      queue_.launch(kernel.stream, time);
      return;
    }
    if (kernel.phase != StepPhase::kBackward) await_collectives();
    double not_before = batch_ready_;
    if (batch_ready_ > 0) {
      now_.exposed_copy += std::max(0.0, batch_ready_ - queue_.end_of(Stream::kCompute));
      batch_ready_ = 0;
    }
    not_before = std::max(not_before, barrier_);
    const double start = std::max({queue_.end_of(Stream::kCompute), queue_.host(), not_before});
    if (start < queue_.end_of(Stream::kCommunication)) time *= 1 + settings_.contention;
    const double end = queue_.launch(Stream::kCompute, time, not_before);
    now_.device += time;
    now_.phase_device[phase] += time;
    now_.phase_elapsed[phase] += end - end_;
    end_ = end;
  }

  /// A copy that is not asynchronous from page-locked memory holds the host until it is done.
  void copy_in(const Kernel& kernel, double time) {
    now_.copy += time;
    const double end = queue_.launch(kernel.stream, time, barrier_);
    if (kernel.stream == Stream::kCompute) {
      now_.exposed_copy += time;
      now_.phase_device[static_cast<std::size_t>(kernel.phase)] += time;
      now_.phase_elapsed[static_cast<std::size_t>(kernel.phase)] += end - end_;
      end_ = end;
      queue_.wait_until(end);
    } else {
      next_batch_ready_ = end;  // of the next step: this one's came during the last
      if (!settings_.pinned) queue_.wait_until(end);
    }
  }

  /// start_k = max(ready_k, end_{k-1}): buckets are reduced in order on a stream of their own.
  void reduce(const GradientBucket& bucket) {
    const double time = settings_.all_reduce.time_of(bucket.bytes).count();
    if (time <= 0) return;
    work(settings_.host.launch_us);
    queue_.launch(Stream::kCommunication, time, queue_.end_of(Stream::kCompute));
    now_.communication += time;
    pending_ = true;
  }

  /// Backward ends when all its collectives have.
  void await_collectives() {
    if (!pending_) return;
    pending_ = false;
    barrier_ = queue_.end_of(Stream::kCommunication);
    const double exposed = std::max(0.0, barrier_ - queue_.end_of(Stream::kCompute));
    now_.exposed_communication += exposed;
    now_.phase_elapsed[static_cast<std::size_t>(StepPhase::kBackward)] +=
        std::max(0.0, barrier_ - end_);
    end_ = std::max(end_, barrier_);
  }

  const Program& program_;
  const std::vector<Nanos>& times_;
  const ReplaySettings& settings_;
  LaunchQueue queue_;
  ReplayedIteration now_;
  double end_ = 0;          ///< of the last work that counts for the step
  double barrier_ = 0;      ///< compute may not start before: collectives
  double batch_ready_ = 0;  ///< the prefetched batch of this iteration; 0: nothing to wait for
  double next_batch_ready_ = 0;
  bool pending_ = false;
  std::uint32_t last_source_ = Kernel::kSynthesized;
};

}  // namespace

ReplayedIteration replay_until_steady(const Program& program,
                                      const std::vector<Nanos>& kernel_times,
                                      const ReplaySettings& settings) {
  Replay replay(program, kernel_times, settings);
  ReplayedIteration last = replay.run(true);
  for (int i = 1; i < kMostIterations; ++i) {
    const double before = last.total;
    last = replay.run(false);
    if (i + 1 >= kLeastIterations && std::abs(last.total - before) <= kSteady * before) break;
  }
  return last;
}

}  // namespace stoker
