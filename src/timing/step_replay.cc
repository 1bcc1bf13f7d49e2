#include "timing/step_replay.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

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
    copied_out_ = copied_out_before_ = queue_.end_of(Stream::kCompute);
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
      case InstructionKind::kAwaitCommunication:
        await_operator(in.value);
        break;
      case InstructionKind::kAllocate:
      case InstructionKind::kFree:
      case InstructionKind::kEmptyCache:
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
    if (kernel.stream == Stream::kCommunication) return communicate(kernel, time);
    if (kernel.stream != Stream::kCompute) {
      queue_.launch(kernel.stream, time);
      return;
    }
    const auto phase = static_cast<std::size_t>(kernel.phase);
    last_phase_ = kernel.phase;
    if (kernel.phase != StepPhase::kBackward) await_collectives();
    double not_before = batch_ready_;
    if (batch_ready_ > 0) {
      now_.exposed_copy += std::max(0.0, batch_ready_ - queue_.end_of(Stream::kCompute));
      batch_ready_ = 0;
    }
    not_before = std::max(not_before, barrier_);
    const bool collective = kernel.kernel_class == KernelClass::kCollective;
    const double start = std::max({queue_.end_of(Stream::kCompute), queue_.host(), not_before});
    if (!collective && start < queue_.end_of(Stream::kCommunication))
      time *= 1 + settings_.contention;
    const double end = queue_.launch(Stream::kCompute, time, not_before);
    if (collective) {  // nothing hides what the compute stream executes itself
      now_.communication += time;
      now_.exposed_communication += time;
    } else {
      now_.device += time;
      now_.phase_device[phase] += time;
    }
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

  /// FSDP's collectives and the copies into them, in order. A reduction waits for the gradients; a
  /// gather for the optimizer, and in the forward for the copy out of the buffer before the last,
  /// in the backward for that out of the last (_fsdp_param_group.py, wait_for_unshard).
  void communicate(const Kernel& kernel, double time) {
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    const bool reduction = shape != nullptr && shape->kind == CollectiveKind::kReduceScatter;
    const double computed = queue_.end_of(Stream::kCompute);
    const bool backward = kernel.phase == StepPhase::kBackward;
    if (!backward && last_phase_ >= StepPhase::kBackward) {
      copied_out_ = copied_out_before_ = computed;
      last_phase_ = kernel.phase;
    }
    const double not_before = reduction ? computed : backward ? copied_out_ : copied_out_before_;
    const double end = queue_.launch(Stream::kCommunication, time, not_before);
    ended_[kernel.source] = {end, !reduction};
    if (shape != nullptr) now_.communication += time;
    if (!reduction) return;
    pending_ = true;
    pending_end_ = end;
  }

  /// The compute stream waits for one operator on kCommunication; what was gathered is copied out
  /// next.
  void await_operator(std::uint32_t source) {
    const auto it = ended_.find(source);
    if (it == ended_.end()) return;
    wait_for(it->second.end, last_phase_);
    if (!it->second.gathered) return;
    copied_out_before_ = copied_out_;
    copied_out_ = std::max(queue_.end_of(Stream::kCompute), barrier_);
  }

  /// Compute starts nothing before `end`.
  void wait_for(double end, StepPhase phase) {
    const double waited = std::max(barrier_, queue_.end_of(Stream::kCompute));
    now_.exposed_communication += std::max(0.0, end - waited);
    now_.phase_elapsed[static_cast<std::size_t>(phase)] += std::max(0.0, end - end_);
    barrier_ = std::max(barrier_, end);
    end_ = std::max(end_, end);
  }

  /// start_k = max(ready_k, end_{k-1}): buckets are reduced in order on a stream of their own.
  void reduce(const GradientBucket& bucket) {
    const double time = settings_.all_reduce.time_of(bucket.bytes).count();
    if (time <= 0) return;
    work(settings_.host.launch_us);
    pending_end_ = queue_.launch(Stream::kCommunication, time, queue_.end_of(Stream::kCompute));
    now_.communication += time;
    pending_ = true;
  }

  /// Backward ends when all its collectives have.
  void await_collectives() {
    if (!pending_) return;
    pending_ = false;
    wait_for(pending_end_, StepPhase::kBackward);
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
  bool pending_ = false;  ///< reductions that the optimizer waits for, the last of which ends at
  double pending_end_ = 0;
  struct Ended {
    double end;
    bool gathered;
  };
  std::unordered_map<std::uint32_t, Ended> ended_;  ///< on kCommunication, by Kernel::source
  double copied_out_ = 0, copied_out_before_ = 0;   ///< when the last two copies-out may start
  StepPhase last_phase_ = StepPhase::kLoad;         ///< of the compute stream
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
