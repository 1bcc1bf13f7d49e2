#include "timing/gpu/step_band.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/percent.h"
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

/// Memory of the fastest GPU whose operators were measured (H100 SXM), bytes/s.
constexpr double kFastestMeasured = 3.35e12;
/// 90 % half-width for each e-fold of bandwidth beyond it, of GPUs without rows of their own.
/// Fitted with the rest (scripts/fit_timing/bands.py); only GH200 and B200 tell of it.
constexpr double kBeyondSpread = 0.5;
/// E-folds from which the basis says so: an eighth beyond.
constexpr double kNoteworthyDistance = 0.12;
/// Which operators share a kernel is decided by rules after Inductor's (rewrite/compile), how fast
/// its kernels and its choice of products are was read off few rows (docs/models/compile.md). A
/// prior.
constexpr double kCompiledSpread = 0.15;

/// Kernels too short for arithmetic or memory to explain their time follow each other without the
/// host in a CUDA graph alone: everywhere else the host hides what they take, so no row tells of
/// it. A prior.
constexpr double kGraphLatencySpread = 0.6;

double squared(double x) { return x * x; }

/// Copies of the batch and collectives, whose doubt is that of the bus.
bool is_transfer(const Kernel& kernel) {
  return kernel.kernel_class == KernelClass::kHostToDevice ||
         kernel.kernel_class == KernelClass::kCollective;
}

/// What of a kernel's time its arithmetic or its bytes explain.
Nanos explained(const KernelCost& cost) {
  return std::min(cost.time, std::max(cost.compute, cost.memory));
}

/// What the device runs, with the cost of each and how often.
template <class Visit>
void for_each_launch(const Program& program, const std::vector<KernelCost>& costs, Visit&& visit) {
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t times) {
    if (k < costs.size() && !kernel.on_host) visit(kernel, costs[k], static_cast<double>(times));
  });
}

/// How far a GPU's memory is faster than what was measured: e-folds.
double distance_of(const GpuRates& device, CoefficientLevel level) {
  if (level >= CoefficientLevel::kGpu) return 0;
  return std::max(0.0, std::log(device.bandwidth / kFastestMeasured));
}

/// What kernels go to, and the share that has no rule.
void add_shares(const Program& program, const std::vector<KernelCost>& costs, StepTime& out) {
  double all = 0, without_rule = 0;
  for_each_launch(program, costs, [&](const Kernel& kernel, const KernelCost& cost, double times) {
    const Nanos time = cost.time * times;
    out.class_device[static_cast<std::size_t>(kernel.kernel_class)] += time;
    if (is_transfer(kernel)) return;
    const Nanos hidden = explained(cost) * times;
    const Bound bound = cost.compute > cost.memory ? Bound::kCompute : Bound::kMemory;
    out.bound_device[static_cast<std::size_t>(bound)] += hidden;
    out.bound_device[static_cast<std::size_t>(Bound::kLatency)] += time - hidden;
    all += time.count();
    if (!cost.has_rule) without_rule += time.count();
  });
  if (all > 0) out.uncosted_share = without_rule / all;
}

/// Shares of device time by class of cost, and those that hold for some kernels of any class.
struct DoubtfulTime {
  std::array<double, kCostClasses> by_class{};
  double all = 0, tensor = 0, capped = 0, backward = 0, latency = 0, compiled = 0;

  /// On FP32 units, of whatever kind.
  [[nodiscard]] double convolution() const {
    using enum CostClass;
    double time = 0;
    for (const CostClass c : {kConvolution, kConvolutionInput, kConvolutionWeight, kWinograd,
                              kGroupedConvolution, kGroupedConvolutionNhwc, kDepthwise,
                              kDepthwiseNhwc, kDepthwiseWeight, kDepthwiseWeightNhwc})
      time += by_class[static_cast<std::size_t>(c)];
    return time;
  }
};

DoubtfulTime doubtful_time(const Program& program, const std::vector<KernelCost>& costs,
                           const GpuRates& device) {
  DoubtfulTime sum;
  for_each_launch(program, costs, [&](const Kernel& kernel, const KernelCost& cost, double times) {
    if (is_transfer(kernel)) return;
    const double time = cost.time.count() * times;
    const auto unit = static_cast<std::size_t>(kernel.unit);
    sum.by_class[static_cast<std::size_t>(cost.cost_class)] += time;
    sum.all += time;
    if (kernel.compiled) sum.compiled += time;
    if (kernel.phase == StepPhase::kBackward) sum.backward += time;
    sum.latency += (cost.time - explained(cost)).count() * times;
    if (cost.compute > cost.memory && device.capped[unit]) sum.capped += time;
    if (cost.bound == Bound::kCompute && device.tensor[unit]) sum.tensor += time;
  });
  return sum;
}

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

std::string band_term_name(std::size_t term) {
  if (term >= kCostClasses) return kFurtherTerms[term - kCostClasses];
  return std::string(name_of(static_cast<CostClass>(term))) + ".spread";
}

BandTerms band_terms(const Program& program, const std::vector<KernelCost>& costs,
                     const CostModel& model, const AllReduceModel& all_reduce,
                     const StepTime& time) {
  const Coefficients& c = model.coefficients();
  const double total = std::max(1.0, time.total.count());
  const double on_device = std::min(1.0, time.device.count() / total);
  const DoubtfulTime sum = doubtful_time(program, costs, model.device());
  const double share = sum.all > 0 ? on_device / sum.all : 0;
  BandTerms terms{};
  for (std::size_t i = 0; i < kCostClasses; ++i)
    terms[i] = {share * sum.by_class[i], c.classes[i].spread};
  // Efficiencies were fitted beside the learned times, so without them they are a guess again.
  const double common =
      c.residual_problem.empty() ? c.common_spread : std::max(c.common_spread, kUnlearnedSpread);
  const std::array<BandTerm, kFurtherTerms.size()> further{{
      {on_device, common},
      {share * sum.tensor, c.tensor_spread},
      {share * sum.capped, c.band.capped},
      {share * sum.backward, c.band.backward},
      {share * sum.latency, c.band.latency},
      {share * sum.compiled, kCompiledSpread},
      {c.level < CoefficientLevel::kChip ? share * sum.convolution() : 0,
       c.band.unseen_convolution},
      {on_device * distance_of(model.device(), c.level), kBeyondSpread},
      {time.graphs.count() / total, c.kernel.graph_spread},
      {program.cuda_graphs ? share * sum.latency : 0, kGraphLatencySpread},
      {time.exposed_copy.count() / total, kCopySpread},
      {time.exposed_communication.count() / total, all_reduce.spread},
      {replica_threads(program) > 1 ? 1.0 : 0.0, kReplicaThreadsSpread},
  }};
  std::copy(further.begin(), further.end(), terms.begin() + kCostClasses);
  return terms;
}

void add_band(const Program& program, const std::vector<KernelCost>& costs, const CostModel& model,
              const AllReduceModel& all_reduce, const HostDoubt& host, StepTime& out) {
  const Coefficients& c = model.coefficients();
  add_shares(program, costs, out);
  double variance = 0;
  const BandTerms terms = band_terms(program, costs, model, all_reduce, out);
  for (const BandTerm& term : terms) variance += squared(term.share * term.spread);
  const double on_device = std::min(1.0, out.device.count() / std::max(1.0, out.total.count()));
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
  if (replica_threads(program) > 1) out.basis += "; no row checks nn.DataParallel's threads";
  if (distance_of(model.device(), c.level) > kNoteworthyDistance)
    out.basis += "; memory faster than any that was measured";
  if (terms[kCompiledTerm].share > 0)
    out.basis += "; torch.compile's kernels by stated rules, with a prior's band";
  if (program.cuda_graphs) out.basis += "; CUDA graphs by an approximation that no row tests";
  if (!out.host_bound()) return;
  out.basis += host.speed == nullptr
                   ? "; the host limits, by dispatch measured on it"
                   : "; the host limits, by dispatch measured on another core, scaled to " +
                         host.speed->cpu + " (" + host.speed->basis + ")";
}

}  // namespace stoker
