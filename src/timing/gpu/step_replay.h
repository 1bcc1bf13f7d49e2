#pragma once

#include <array>
#include <vector>

#include "program/copy_way.h"
#include "program/program.h"
#include "timing/collective/collectives.h"
#include "timing/common/coefficients.h"

/// The launch queue fed with a Program's iterations. Internal to src/timing.
namespace stoker {

struct ReplaySettings {
  const HostCoefficients& host;
  double core_speed = 1;  ///< of the host, relative to the one that `host` speaks of; above 0
  double contention = 0;  ///< slow-down of kernels beside a collective
  const AllReduceModel& all_reduce;
  CopyWay copy = CopyWay::kBlocking;
  std::size_t queue_depth = 1024;
  Micros graph_gain;  ///< KernelCoefficients
};

/// One iteration on the clock; the words are those of StepTime.
struct ReplayedIteration {
  Nanos total, device, host, starved, copy, exposed_copy, communication, exposed_communication;
  Nanos graphs;  ///< of `device`, in kernels of CUDA graphs
  std::array<Nanos, kStepPhases> phase_device{}, phase_elapsed{}, phase_host{};
};

/// Replicas that nn.DataParallel runs in threads of one process, as its broadcasts of parameters
/// tell; 1 otherwise.
[[nodiscard]] int replica_threads(const Program& program);

/// The program's iteration, or one of its passes.
struct Played {
  const std::vector<Instruction>& instructions;
  Repeated repeated;
};

/// Replays instructions until two in a row take the same time: the host's lead over the device
/// builds up over several steps. Of what is repeated so much is played as it takes until host and
/// device are in step; the rest would take as long. `kernel_times` is parallel to the program's
/// kernels.
[[nodiscard]] ReplayedIteration replay_until_steady(const Program& program, const Played& played,
                                                    const std::vector<Nanos>& kernel_times,
                                                    const ReplaySettings& settings);

}  // namespace stoker
