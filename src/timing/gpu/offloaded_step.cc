#include "timing/gpu/offloaded_step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace stoker {
namespace {

/// Bytes/s, read and written, of one thread that goes through tensors with PyTorch's vectorised
/// loops: servers reach 10 to 15 from memory, and the machine of
/// docs/models/parallel.md#cpu-offload up to 60, where passes share its cache. A prior.
constexpr double kThreadRate = 20e9;
/// Bytes/s that the memory of one node serves all its ranks with. A prior: eight channels of DDR4.
constexpr double kNodeRate = 200e9;
/// 90 % of the doubt about both, as factors: threads that somebody gave the ranks, large caches
/// (three times as fast as the prior was measured) and slow memory.
constexpr double kFaster = 3.5, kSlower = 2;

}  // namespace

HostPasses host_passes(Bytes moved, int ranks) {
  const double share = kNodeRate / std::max(1, ranks);
  const double rate = ranks > 1 ? std::min(kThreadRate, share) : share;
  const double nanos = 1e9 * static_cast<double>(moved.count()) / rate;
  return {Nanos(nanos), Nanos(nanos / kFaster), Nanos(nanos * kSlower)};
}

HostPasses cost_offloaded(const Program& program, int ranks, std::vector<KernelCost>& costs) {
  HostPasses all{};
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const Kernel& kernel = program.kernels[k];
    if (!kernel.on_host) continue;
    const HostPasses one = host_passes(kernel.read + kernel.written, ranks);
    costs[k] = {};
    costs[k].time = one.time;
    costs[k].has_rule = true;
    all.time += one.time, all.least += one.least, all.most += one.most;
  }
  return all;
}

Band with_host_passes(Band band, const HostPasses& passes, Nanos total) {
  const double whole = std::max(1.0, total.count());
  return {std::min(1.0, std::hypot(band.below, (passes.time - passes.least).count() / whole)),
          std::hypot(band.above, (passes.most - passes.time).count() / whole)};
}

}  // namespace stoker
