#include "timing/gpu/step_band.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "timing/gpu/step_replay.h"

namespace stoker {
namespace {

/// 90 % half-width that all kernels share where the learned times are damaged: what those without
/// any have (Coefficients::common_spread). A prior.
constexpr double kUnlearnedSpread = 0.3;
/// PCIe copies vary with chipset and NUMA node.
constexpr double kCopySpread = 0.3;
/// nn.DataParallel's replicas run in threads of one process under one lock and are built anew in
/// each step. The lock is in the replay, the rest is not. A prior; no row identifies it.
constexpr double kReplicaThreadsSpread = 0.5;

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(share * 100))) + " %";
}

double squared(double x) { return x * x; }

/// How far the band of what a GPU does has to be stretched, by what is known of the GPU.
double scale_of(const Coefficients& c) {
  if (c.level == CoefficientLevel::kCalibrated) return c.band.calibrated;
  return c.level >= CoefficientLevel::kChip ? c.band.known : c.band.unseen;
}

}  // namespace

double host_spread(const Coefficients& coefficients, const HostSpeed* speed) {
  return coefficients.band.host *
         std::hypot(coefficients.host.spread, speed == nullptr ? 0 : speed->spread);
}

void add_band(const Program& program, const std::vector<KernelCost>& costs, const CostModel& model,
              const AllReduceModel& all_reduce, const HostDoubt& host, StepTime& out) {
  const Coefficients& c = model.coefficients();
  std::array<double, kCostClasses> by_class{};
  double all = 0, tensor = 0, without_rule = 0, capped = 0, backward = 0, latency = 0;
  for (const Instruction& in : program.iteration) {
    if (in.kind != InstructionKind::kLaunch || in.when == When::kFirst || in.value >= costs.size())
      continue;
    const Kernel& kernel = program.kernels[in.value];
    const KernelCost& cost = costs[in.value];
    const double time = cost.time.count();
    out.class_device[static_cast<std::size_t>(kernel.kernel_class)] += cost.time;
    if (kernel.kernel_class == KernelClass::kHostToDevice ||
        kernel.kernel_class == KernelClass::kCollective)
      continue;
    by_class[static_cast<std::size_t>(cost.cost_class)] += time;
    const Nanos hidden = std::min(cost.time, std::max(cost.compute, cost.memory));
    const Bound bound = cost.compute > cost.memory ? Bound::kCompute : Bound::kMemory;
    out.bound_device[static_cast<std::size_t>(bound)] += hidden;
    out.bound_device[static_cast<std::size_t>(Bound::kLatency)] += cost.time - hidden;
    all += time;
    if (kernel.phase == StepPhase::kBackward) backward += time;
    latency += (cost.time - hidden).count();
    if (bound == Bound::kCompute && model.device().capped[static_cast<std::size_t>(kernel.unit)])
      capped += time;
    if (!cost.has_rule) without_rule += time;
    if (cost.bound == Bound::kCompute &&
        model.device().tensor[static_cast<std::size_t>(kernel.unit)]) {
      tensor += time;
    }
  }
  // Efficiencies were fitted beside the learned times, so without them they are a guess again.
  double device = squared(c.residual_problem.empty() ? c.common_spread
                                                     : std::max(c.common_spread, kUnlearnedSpread));
  if (all > 0) {
    for (std::size_t i = 0; i < kCostClasses; ++i)
      device += squared(by_class[i] / all * c.classes[i].spread);
    device += squared(tensor / all * c.tensor_spread);
    device += squared(capped / all * c.band.capped) + squared(backward / all * c.band.backward) +
              squared(latency / all * c.band.latency);
    out.uncosted_share = without_rule / all;
  }
  const double total = std::max(1.0, out.total.count());
  const double on_device = std::min(1.0, out.device.count() / total);
  const bool threads = replica_threads(program) > 1;
  const double variance = (threads ? squared(kReplicaThreadsSpread) : 0) +
                          squared(on_device) * device +
                          squared(out.graphs.count() / total * c.kernel.graph_spread) +
                          squared(out.exposed_copy.count() / total * kCopySpread) +
                          squared(out.exposed_communication.count() / total * all_reduce.spread);
  // An operator without a rule was never measured, so that its doubt is added to the measured ones
  // in full: a step must not look surer for what is not known of it.
  const double uncosted = on_device * out.uncosted_share * c.of(CostClass::kUncosted).spread;
  // Errors of times are ratios: as likely r times too long as r times too short.
  const double relative = scale_of(c) * (std::sqrt(variance) + uncosted);
  out.band = {std::min(1.0, std::hypot(relative / (1 + relative), host.below)),
              std::hypot(relative, host.above)};

  out.basis = c.basis;
  if (all_reduce.ranks > 1 && out.communication.count() > 0) out.basis += "; " + all_reduce.basis;
  if (out.uncosted_share >= 0.005) {
    out.basis += "; " + percent(out.uncosted_share) + " of device time without a cost rule";
  }
  if (threads) out.basis += "; no row checks nn.DataParallel's threads";
  if (program.cuda_graphs) out.basis += "; CUDA graphs by an approximation that no row tests";
  if (!out.host_bound()) return;
  out.basis += host.speed == nullptr
                   ? "; the host limits, by dispatch measured on it"
                   : "; the host limits, by dispatch measured on another core, scaled to " +
                         host.speed->cpu + " (" + host.speed->basis + ")";
}

}  // namespace stoker
