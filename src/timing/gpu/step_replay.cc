#include "timing/gpu/step_replay.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "timing/gpu/graph_plan.h"
#include "timing/gpu/launch_queue.h"

namespace stoker {
namespace {

/// Enough for the host's lead to fill the queue in all but contrived cases.
constexpr int kMostIterations = 16;
constexpr int kLeastIterations = 3;
constexpr double kSteady = 1e-3;  ///< relative difference of two iterations that counts as none
/// Relative difference of two repetitions that rounding explains, and repetitions in a row without
/// any after which there will be none.
constexpr double kAlike = 1e-9;
constexpr int kSurelyInStep = 64;

/// The allocator's own time is part of a dispatch.
bool takes_time(InstructionKind kind) {
  return kind == InstructionKind::kLaunch || kind == InstructionKind::kSynchronize ||
         kind == InstructionKind::kBucketReady || kind == InstructionKind::kAwaitCommunication;
}

/// Calls visit(sum of `now`, the same of `before`) for what adds up over an iteration; `starved`
/// and `total` are set at its end.
template <class Visit>
void each_sum(ReplayedIteration& now, const ReplayedIteration& before, Visit&& visit) {
  using I = ReplayedIteration;
  for (Nanos I::*sum : {&I::device, &I::host, &I::copy, &I::exposed_copy, &I::communication,
                        &I::exposed_communication, &I::graphs})
    visit(now.*sum, before.*sum);
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    visit(now.phase_device[p], before.phase_device[p]);
    visit(now.phase_elapsed[p], before.phase_elapsed[p]);
    visit(now.phase_host[p], before.phase_host[p]);
  }
}

class Replay {
 public:
  Replay(const Program& program, const Played& played, const std::vector<Nanos>& times,
         const ReplaySettings& settings)
      : program_(program),
        times_(times),
        settings_(settings),
        graphs_(program, played.instructions),
        queue_(settings.queue_depth),
        replicas_(replica_threads(program)) {
    repeated_.times = played.repeated.times;
    for (std::size_t i = 0; i <= played.instructions.size(); ++i) {
      if (i == played.repeated.from) repeated_.from = instructions_.size();
      if (i == played.repeated.to) repeated_.to = instructions_.size();
      if (i < played.instructions.size() && takes_time(played.instructions[i].kind))
        instructions_.push_back({played.instructions[i], graphs_.launched_at(i)});
    }
  }

  ReplayedIteration run(bool first) {
    now_ = {};
    const Nanos begin = end_;
    const Nanos starved_before = queue_.starved(Stream::kCompute);
    skipped_starved_ = Nanos(0);
    batch_ready_ = next_batch_ready_;
    last_source_ = Kernel::kSynthesized;
    copied_out_ = copied_out_before_ = queue_.end_of(Stream::kCompute);
    play(0, repeated_.from, first);
    repeat(first);
    play(repeated_.to, instructions_.size(), first);
    work(settings_.host.step, StepPhase::kLoad);
    // A step without an optimizer still ends with the reduced gradients.
    await_collectives();
    end_ = std::max(end_, queue_.end_of(Stream::kCompute));
    now_.starved = queue_.starved(Stream::kCompute) - starved_before + skipped_starved_;
    // With nothing on the device, or a host that only waits, the host's clock decides.
    if (now_.device == Nanos(0)) end_ = std::max(end_, queue_.host());
    now_.total = end_ - begin;
    return now_;
  }

 private:
  void play(std::size_t from, std::size_t to, bool first) {
    for (std::size_t i = from; i < to; ++i) {
      const auto& [in, graph_kernels] = instructions_[i];
      if (in.when == When::kFirst && !first) continue;
      if (in.when == When::kLater && first) continue;
      if (graph_kernels > 0) launch_graph(graph_kernels, in);
      execute(in);
    }
  }

  void repeat(bool first) {
    Nanos last(-1);
    int in_step = 0;           // repetitions in which host and device went on alike
    std::size_t launches = 0;  // in them
    for (std::int64_t i = 0; i < repeated_.times; ++i) {
      const ReplayedIteration before = now_;
      const Nanos end = end_, host = queue_.host(), starved = queue_.starved(Stream::kCompute);
      const std::size_t launched = queue_.launches();
      play(repeated_.from, repeated_.to, first);
      const Nanos passed = end_ - end;
      const auto same = [&](Nanos other) {
        return std::abs((passed - other).count()) <= kAlike * passed.count();
      };
      const bool alike = same(last) && same(queue_.host() - host);
      last = passed;
      in_step = alike ? in_step + 1 : 0;
      launches = alike ? launches + queue_.launches() - launched : 0;
      // The queue holds what was launched before.
      if (launches < settings_.queue_depth && in_step < kSurelyInStep) continue;
      skip(static_cast<double>(repeated_.times - 1 - i), passed,
           queue_.starved(Stream::kCompute) - starved, before);
      return;
    }
  }

  /// Another `times` repetitions like the last one, before which the iteration was `before`.
  void skip(double times, Nanos passed, Nanos starved, const ReplayedIteration& before) {
    const Nanos time = times * passed;
    queue_.skip(time);
    skipped_starved_ += times * starved;
    for (Nanos* clock : {&end_, &barrier_, &pending_end_, &copied_out_, &copied_out_before_})
      *clock += time;
    for (Nanos* ready : {&batch_ready_, &next_batch_ready_})
      if (*ready > Nanos(0)) *ready += time;
    for (auto& [source, ended] : ended_) ended.end += time;
    each_sum(now_, before, [&](Nanos& sum, Nanos earlier) { sum += times * (sum - earlier); });
  }

  void work(Micros on_reference, StepPhase phase) {
    const Nanos time = as_nanos(on_reference) / settings_.core_speed;
    queue_.host_work(time);
    now_.host += time;
    now_.phase_host[static_cast<std::size_t>(phase)] += time;
  }

  void execute(const Instruction& in) {
    switch (in.kind) {
      case InstructionKind::kLaunch:
        if (in.value < program_.kernels.size())
          launch(program_.kernels[in.value], times_[in.value]);
        break;
      case InstructionKind::kSynchronize:
        queue_.synchronize();
        work(settings_.host.synchronize, last_phase_);
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
        break;
    }
  }

  /// What the library behind a kernel does on the host besides launching it.
  [[nodiscard]] Micros library_time(const Kernel& kernel) const {
    const HostCoefficients& host = settings_.host;
    switch (kernel.kernel_class) {
      case KernelClass::kConvolution:
      case KernelClass::kDepthwiseConvolution:
      case KernelClass::kRnn:
        return host.library;
      case KernelClass::kNormalization:
        return std::holds_alternative<RowShape>(kernel.shape) ? host.rows : host.library;
      case KernelClass::kGemm:
        return host.product;
      case KernelClass::kAttention:
        return host.attention;
      case KernelClass::kCopy:
        return host.conversion;
      default:
        return Micros(0);
    }
  }

  /// Dispatch of the operator behind a kernel; its further kernels cost launches only.
  [[nodiscard]] Micros operator_time(const Kernel& kernel) const {
    const HostCoefficients& host = settings_.host;
    const bool further = kernel.source != Kernel::kSynthesized && kernel.source == last_source_;
    if (!further && kernel.listed > 0) return host.optimizer + host.list * kernel.listed;
    if (!further && kernel.phase == StepPhase::kOptimizer) return host.update;
    if (kernel.compiled) return host.compiled;
    const Micros library = library_time(kernel);
    if (further) return host.launch + library;
    if (kernel.phase == StepPhase::kBackward) return host.backward + library;
    return host.forward + (program_.records_graph ? host.autograd : Micros(0)) +
           host.module * kernel.modules + library;
  }

  /// nn.DataParallel's replicas run their forwards in threads of one process under one lock:
  /// between two operators of GPU 0 those of the others are issued. The backward's threads need no
  /// lock.
  [[nodiscard]] bool replicated(const Kernel& kernel) const {
    return replicas_ > 1 && kernel.phase == StepPhase::kForward &&
           kernel.kernel_class != KernelClass::kCollective;
  }

  void dispatch(const Kernel& kernel) {
    const HostCoefficients& host = settings_.host;
    const Micros cost =
        operator_time(kernel) + host.launch * std::max(0, static_cast<int>(kernel.launches) - 1);
    last_source_ = kernel.source;
    const double times = replicated(kernel) ? static_cast<double>(replicas_) : 1;
    work(times * (cost + host.view * kernel.views), kernel.phase);
  }

  void launch_graph(std::size_t kernels, const Instruction& first) {
    const HostCoefficients& host = settings_.host;
    work(host.graph + host.graph_kernel * static_cast<double>(kernels),
         program_.kernels[first.value].phase);
  }

  /// Within a graph kernels follow each other without the host, and a little closer.
  Nanos start(const Kernel& kernel, Nanos time, Nanos not_before) {
    if (!graphs_.holds(kernel)) return queue_.launch(kernel.stream, time, not_before);
    return queue_.follow(kernel.stream, time, not_before);
  }

  /// What the host's processor computes while the device waits for it: FSDP's optimizer over
  /// offloaded shards. The gradients have to be there, and the next step gathers what it writes.
  void on_host(const Kernel& kernel, Nanos time) {
    await_collectives();
    queue_.synchronize();
    work(settings_.host.update * kernel.launches, kernel.phase);
    const Nanos end = queue_.follow(Stream::kCompute, time, std::max(queue_.host(), barrier_));
    queue_.wait_until(end);
    const auto phase = static_cast<std::size_t>(kernel.phase);
    now_.phase_elapsed[phase] += end - end_;
    end_ = end;
  }

  void launch(const Kernel& kernel, Nanos time) {
    if (kernel.on_host) return on_host(kernel, time);
    if (graphs_.holds(kernel))
      time -= std::min(time / 2, as_nanos(settings_.graph_gain) * kernel.launches);
    else dispatch(kernel);
    if (kernel.stream == Stream::kCommunication) return communicate(kernel, time);
    if (kernel.kernel_class == KernelClass::kHostToDevice) return copy_in(kernel, time);
    if (kernel.stream != Stream::kCompute) {
      queue_.launch(kernel.stream, time);
      return;
    }
    const auto phase = static_cast<std::size_t>(kernel.phase);
    last_phase_ = kernel.phase;
    if (kernel.phase != StepPhase::kBackward) await_collectives();
    Nanos not_before = batch_ready_;
    if (batch_ready_ > Nanos(0)) {
      now_.exposed_copy += std::max(Nanos(0), batch_ready_ - queue_.end_of(Stream::kCompute));
      batch_ready_ = Nanos(0);
    }
    not_before = std::max(not_before, barrier_);
    const bool collective = kernel.kernel_class == KernelClass::kCollective;
    const Nanos begin = std::max({queue_.end_of(Stream::kCompute), queue_.host(), not_before});
    if (!collective && begin < queue_.end_of(Stream::kCommunication))
      time = time * (1 + settings_.contention);
    const Nanos end = start(kernel, time, not_before);
    if (collective) {  // nothing hides what the compute stream executes itself
      now_.communication += time;
      now_.exposed_communication += time;
    } else {
      now_.device += time;
      now_.phase_device[phase] += time;
      if (graphs_.holds(kernel)) now_.graphs += time;
    }
    now_.phase_elapsed[phase] += end - end_;
    end_ = end;
  }

  /// A copy that is not asynchronous and from page-locked memory holds the host until it is done;
  /// on the compute stream it runs after what is there already, beside nothing.
  void copy_in(const Kernel& kernel, Nanos time) {
    now_.copy += time;
    const Nanos end = queue_.launch(kernel.stream, time, barrier_);
    if (kernel.stream == Stream::kCompute) {
      now_.exposed_copy += time;
      now_.phase_device[static_cast<std::size_t>(kernel.phase)] += time;
      now_.phase_elapsed[static_cast<std::size_t>(kernel.phase)] += end - end_;
      end_ = end;
      if (settings_.copy != CopyWay::kNonBlocking) queue_.wait_until(end);
    } else {
      next_batch_ready_ = end;  // of the next step: this one's came during the last
      if (!is_pinned(settings_.copy)) queue_.wait_until(end);
    }
  }

  /// FSDP's collectives and the copies into them, in order. A reduction waits for the gradients; a
  /// gather for the optimizer, and in the forward for the copy out of the buffer before the last,
  /// in the backward for that out of the last (_fsdp_param_group.py, wait_for_unshard).
  void communicate(const Kernel& kernel, Nanos time) {
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    const bool reduction = shape != nullptr && (shape->kind == CollectiveKind::kReduceScatter ||
                                                shape->kind == CollectiveKind::kAllReduce);
    const Nanos computed = queue_.end_of(Stream::kCompute);
    const bool backward = kernel.phase == StepPhase::kBackward;
    if (!backward && last_phase_ >= StepPhase::kBackward) {
      copied_out_ = copied_out_before_ = computed;
      last_phase_ = kernel.phase;
    }
    const Nanos not_before = reduction ? computed : backward ? copied_out_ : copied_out_before_;
    const Nanos end = start(kernel, time, not_before);
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
  void wait_for(Nanos end, StepPhase phase) {
    const Nanos waited = std::max(barrier_, queue_.end_of(Stream::kCompute));
    now_.exposed_communication += std::max(Nanos(0), end - waited);
    now_.phase_elapsed[static_cast<std::size_t>(phase)] += std::max(Nanos(0), end - end_);
    barrier_ = std::max(barrier_, end);
    end_ = std::max(end_, end);
  }

  /// start_k = max(ready_k, end_{k-1}): buckets are reduced in order on a stream of their own.
  void reduce(const GradientBucket& bucket) {
    const Nanos time = settings_.all_reduce.time_of(bucket.bytes);
    if (time <= Nanos(0)) return;
    const Nanos ready = queue_.end_of(Stream::kCompute);
    if (graphs_.on()) {
      pending_end_ = queue_.follow(Stream::kCommunication, time, ready);
    } else {
      work(settings_.host.launch, StepPhase::kBackward);
      pending_end_ = queue_.launch(Stream::kCommunication, time, ready);
    }
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
  struct Timed {
    Instruction instruction;
    std::size_t graph_kernels;  ///< of the graph that is launched there; 0: none is
  };
  std::vector<Timed> instructions_;  ///< those that take time, most of a program's do not
  Repeated repeated_;                ///< of these
  const std::vector<Nanos>& times_;
  const ReplaySettings& settings_;
  const GraphPlan graphs_;
  LaunchQueue queue_;
  const int replicas_;
  ReplayedIteration now_;
  Nanos skipped_starved_;
  Nanos end_;          ///< of the last work that counts for the step
  Nanos barrier_;      ///< compute may not start before: collectives
  Nanos batch_ready_;  ///< the prefetched batch of this iteration; 0: nothing to wait for
  Nanos next_batch_ready_;
  bool pending_ = false;  ///< reductions that the optimizer waits for, the last of which ends at
  Nanos pending_end_;
  struct Ended {
    Nanos end;
    bool gathered;
  };
  std::unordered_map<std::uint32_t, Ended> ended_;  ///< on kCommunication, by Kernel::source
  Nanos copied_out_, copied_out_before_;            ///< when the last two copies-out may start
  StepPhase last_phase_ = StepPhase::kLoad;         ///< of the compute stream
  std::uint32_t last_source_ = Kernel::kSynthesized;
};

}  // namespace

int replica_threads(const Program& program) {
  int threads = 1;
  for (const Kernel& kernel : program.kernels) {
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    if (shape != nullptr && shape->kind == CollectiveKind::kBroadcast)
      threads = std::max(threads, static_cast<int>(shape->ranks));
  }
  return threads;
}

ReplayedIteration replay_until_steady(const Program& program, const Played& played,
                                      const std::vector<Nanos>& kernel_times,
                                      const ReplaySettings& settings) {
  Replay replay(program, played, kernel_times, settings);
  ReplayedIteration last = replay.run(true);
  for (int i = 1; i < kMostIterations; ++i) {
    const Nanos before = last.total;
    last = replay.run(false);
    if (i + 1 >= kLeastIterations &&
        std::abs((last.total - before).count()) <= kSteady * before.count())
      break;
  }
  return last;
}

}  // namespace stoker
