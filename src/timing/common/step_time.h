#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/figure.h"
#include "base/units.h"
#include "program/copy_way.h"
#include "program/program.h"
#include "timing/common/bound.h"

namespace stoker {

/// What a Program does not say about the run around it.
struct StepTimeOptions {
  CopyWay copy = CopyWay::kBlocking;  ///< Job::copy
  /// GPUs of a node that take part; 0: all of machine.gpu_count.
  int gpus = 0;
  int nodes = 0;                   ///< 0: machine.nodes
  std::size_t queue_depth = 1024;  ///< launches that the host may run ahead of the device
  /// A measured step over the forecast one: kernels and host work take so many times as long,
  /// collectives do not.
  double pace = 1;
  /// On a CPU: operators' threads, 0 for all cores; and memory that each step gets from the
  /// operating system anew, page by page (memory/glibc/heap.h).
  int threads = 0;
  Bytes fresh{};
};

/// One steady-state step. All times in nanoseconds; each is the time of one optimizer step, so of
/// all its micro-batches.
struct StepTime {
  Nanos total;         ///< from one step's end to the next one's
  Nanos device;        ///< sum of kernel times on the compute stream
  Nanos host;          ///< what the host needs to issue everything, were the device infinitely fast
  Nanos exposed_host;  ///< the compute stream idle because the host was late
  Nanos copy;          ///< host-to-device copies, hidden or not
  Nanos exposed_copy;  ///< of those, what the compute stream waited for or executed itself
  Nanos communication;          ///< sum of collectives
  Nanos exposed_communication;  ///< what the optimizer step waited for: collectives, and the
                                ///< slowest rank
  Nanos straggling;             ///< of that, the wait for the slowest rank
  std::array<Nanos, kStepPhases> phase_device{};  ///< kernel time by phase
  std::array<Nanos, kStepPhases>
      phase_elapsed{};  ///< device clock by phase, idle time included; sums to total
  std::array<Nanos, kStepPhases> phase_host{};  ///< of `host`, Python between steps under kLoad
  /// Time of the step's kernels by what it goes to (index: Bound): the longer of arithmetic and
  /// memory of each, and under kLatency what neither explains: launch gaps, serial steps, layout
  /// changes. Collectives and copies of the batch are not in it.
  std::array<Nanos, 3> bound_device{};
  Nanos graphs;     ///< of `device`, in kernels of CUDA graphs
  double busy = 0;  ///< share of the step in which a kernel runs: what nvidia-smi shows
  double mfu = 0;   ///< achieved over data-sheet FLOP/s of the unit that does most of the work
  MathUnit main_unit = MathUnit::kFp32;
  double communication_spread = 0;  ///< 90 % relative half-width of the collectives
  Band band;                        ///< 90 %, of total
  std::string basis;                ///< what the band rests on

  std::vector<Nanos> kernel_times;  ///< parallel to Program::kernels, one execution of each
  std::array<Nanos, kKernelClasses> class_device{};  ///< per step
  double uncosted_share = 0;  ///< of device time, costed by bytes for want of a rule
  Diagnostics diagnostics;

  [[nodiscard]] bool host_bound() const { return exposed_host.count() > 0.1 * total.count(); }
};

/// One repetition of a pass that is no training iteration: a validation batch, the last batch.
struct PassTime {
  std::string name;  ///< of the ExtraPass
  Nanos total;       ///< from batch to batch, on the same clock as StepTime::total
  Nanos host;        ///< what the host needs to issue it
};

/// What a step would take, were this its only limit.
struct StepBound {
  const char* name;  ///< stable: "kernels", "host", "communication", "copy"
  const char* what;  ///< for people
  Nanos time;
};
/// The limits of a step, the longest first: the first bounds it, the next would.
[[nodiscard]] std::vector<StepBound> step_bounds(const StepTime& step_time);

/// Device time of one operator of the captured step: the entries of an explanation, largest first.
struct OperatorTime {
  std::uint32_t source = 0;  ///< index into Step::operators, or Kernel::kSynthesized
  KernelClass kernel_class = KernelClass::kUncosted;
  Nanos time;
};
[[nodiscard]] std::vector<OperatorTime> slowest_operators(const Program& program,
                                                          const StepTime& step_time, std::size_t n);

}  // namespace stoker
