#pragma once

#include <vector>

#include "base/figure.h"
#include "program/program.h"
#include "timing/gpu/kernel_cost.h"

/// The optimizer of FSDP's CPUOffloadPolicy on the host's processor. Internal to src/timing.
namespace stoker {

/// How long the host takes to move so many bytes in passes over tensors that no cache holds, and
/// what that may be at the fastest and at the slowest.
struct HostPasses {
  Nanos time, least, most;
};
/// `ranks`: processes of one node. With several each has one thread, as torchrun sets
/// (OMP_NUM_THREADS=1); one alone has all cores.
[[nodiscard]] HostPasses host_passes(Bytes moved, int ranks);

/// Times the kernels that the host runs. Returns the sum over one iteration.
HostPasses cost_offloaded(const Program& program, int ranks, std::vector<KernelCost>& costs);

/// The band of a step that takes `total`, widened by the doubt about its host passes.
[[nodiscard]] Band with_host_passes(Band band, const HostPasses& passes, Nanos total);

}  // namespace stoker
