#include "timing/gpu/gpu_step.h"

#include <algorithm>
#include <cmath>

#include "device/host/host_speed.h"
#include "timing/common/data_sheet.h"
#include "timing/gpu/offloaded_step.h"
#include "timing/gpu/step_band.h"
#include "timing/gpu/step_replay.h"

namespace stoker {
namespace {

constexpr std::array<MathUnit, kMathUnits> kUnits{
    MathUnit::kFp32, MathUnit::kTf32Tensor, MathUnit::kFp16Tensor, MathUnit::kBf16Tensor,
    MathUnit::kFp16, MathUnit::kFp64,       MathUnit::kInteger};

/// The host as somebody named it, else the one that such a GPU usually has.
HostSpeed host_of(const Machine& machine) {
  if (machine.host.dispatch_speed > 0)
    return {machine.host.dispatch_speed, machine.host.dispatch_spread, machine.host.cpu,
            machine.host.dispatch_basis};
  const Gpu* gpu = machine.device.gpu();
  return gpu != nullptr ? usual_host(*gpu) : HostSpeed{};
}

RankLayout layout_of(const Machine& machine, const StepTimeOptions& options) {
  return {std::max(1, options.gpus > 0 ? options.gpus : machine.gpu_count),
          std::max(1, options.nodes > 0 ? options.nodes : machine.nodes)};
}

void count_oddities(const Program& program, const std::vector<KernelCost>& costs,
                    const CostModel& model, Diagnostics& diagnostics) {
  std::int64_t without =
      std::count_if(costs.begin(), costs.end(), [](const auto& c) { return !c.has_rule; });
  program.for_each_launch([&](const Kernel&, std::uint32_t k, std::int64_t times) {
    if (!costs[k].has_rule) without += times - 1;
  });
  if (without > 0) {
    diagnostics.add("uncosted_kernel", Severity::kWarning,
                    "kernels without a cost rule were costed by the bytes they move", without);
  }
  if (const std::string& problem = model.coefficients().residual_problem; !problem.empty()) {
    diagnostics.add("residual_damaged", Severity::kWarning,
                    "learned kernel times cannot be used, analytic rules alone: " + problem);
  }
  if (model.device().guessed) {
    diagnostics.add("gpu_figures_missing", Severity::kWarning,
                    "the GPU's FP32 rate or bandwidth is unknown; a mid-range GPU's stands in");
  }
  if (program.kernels.empty()) {
    diagnostics.add("empty_program", Severity::kWarning, "the step launches nothing");
  }
}

/// Collectives that are kernels of the program take their time from the link, not from the device.
void cost_collectives(const Program& program, const GroupedReduce& groups,
                      std::vector<KernelCost>& costs) {
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const Kernel& kernel = program.kernels[k];
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    if (shape == nullptr) continue;
    const bool reduces =
        shape->kind == CollectiveKind::kReduceScatter || shape->kind == CollectiveKind::kAllReduce;
    costs[k].time =
        groups.time_of(*shape, reduces ? kernel.read : std::max(kernel.read, kernel.written));
  }
}

/// GPUs that share one copy of the model, by the step's gathers; 0: it gathers nothing.
int shard_group(const Program& program) {
  for (const Kernel& kernel : program.kernels) {
    const auto* shape = std::get_if<CollectiveShape>(&kernel.shape);
    if (shape != nullptr && shape->kind == CollectiveKind::kAllGather)
      return static_cast<int>(shape->ranks);
  }
  return 0;
}

/// All ranks wait for the slowest before the optimizer step.
void add_straggling(int ranks, const CollectiveCoefficients& collective, StepTime& out) {
  if (out.communication.count() <= 0) return;
  const Nanos wait = wait_for_slowest(ranks, out.total, collective);
  out.total += wait;
  out.exposed_communication += wait;
  out.straggling = wait;
  out.phase_elapsed[static_cast<std::size_t>(StepPhase::kBackward)] += wait;
}

ReplaySettings replay_settings(const Machine& machine, const Coefficients& coefficients,
                               const AllReduceModel& all_reduce, const StepTimeOptions& options) {
  const double known = coefficients.host.speed;  // of the times as they are
  const double speed =
      machine.host.relative_core_speed * (known > 0 ? known : host_of(machine).speed);
  return {.host = coefficients.host,
          .core_speed = (std::isfinite(speed) && speed > 0 ? speed : 1) / options.pace,
          .contention = coefficients.collective.contention,
          .all_reduce = all_reduce,
          .copy = options.copy,
          .queue_depth = options.queue_depth,
          .graph_gain = coefficients.kernel.graph_gain};
}

/// The host's share of a step's time from which another speed of it may change the step.
constexpr double kHostMayLimit = 0.7;
/// The share of a step in which the device waits for the host from which the host matters.
constexpr double kHostLimits = 0.01;

/// How the step would change, were the host faster or slower by the spread of its times.
void doubt_host(const Program& program, const StepTime& step, double spread,
                ReplaySettings settings, HostDoubt& doubt) {
  const Nanos total = std::max(Nanos(1), step.total);
  if (step.host < kHostMayLimit * total && step.exposed_host < kHostLimits * total) return;
  const double factor = 1 + spread;
  const double known = settings.core_speed;
  const auto changed = [&](double speed) {
    settings.core_speed = speed;
    return replay_until_steady(program, {program.iteration, program.repeated}, step.kernel_times,
                               settings)
        .total;
  };
  const Nanos now = changed(known);
  doubt.below = std::clamp((now - changed(known * factor)) / total, 0.0, 1.0);
  doubt.above = std::max(0.0, (changed(known / factor) - now) / total);
}

/// Times the arithmetic of one steady iteration against the data sheet.
void add_utilization(const Program& program, const Gpu& gpu, StepTime& out) {
  std::array<double, kMathUnits> flops{};
  double all = 0;
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
    const double f = kernel.flops.count() * static_cast<double>(times);
    flops[static_cast<std::size_t>(kernel.unit)] += f;
    all += f;
  });
  const auto most = std::max_element(flops.begin(), flops.end()) - flops.begin();
  out.main_unit = kUnits[static_cast<std::size_t>(most)];
  if (out.total.count() > 0) {
    out.mfu = all / (seconds(out.total) * nominal_peak(gpu, out.main_unit));
    out.busy = std::min(1.0, (out.device + out.exposed_communication) / out.total);
  }
}

}  // namespace

GpuStepModel::GpuStepModel(const Program& program, const Gpu& gpu, const Coefficients& coefficients,
                           const StepTimeOptions& options)
    : program_(program), gpu_(gpu), model_(gpu, coefficients) {
  model_.set_copy(options.copy);
  costs_.reserve(program.kernels.size());
  for (const Kernel& kernel : program.kernels) costs_.push_back(model_.cost_of(kernel));
  if (options.pace == 1) return;
  for (KernelCost& cost : costs_) cost.time = options.pace * cost.time;
}

StepTime GpuStepModel::predict(const Machine& machine, const StepTimeOptions& options) const {
  const Program& program = program_;
  const Coefficients& coefficients = model_.coefficients();
  const GroupedReduce groups = groups_of(machine, options);
  const AllReduceModel& all_reduce = groups.all;
  std::vector<KernelCost> costs = costs_;
  cost_collectives(program, groups, costs);
  const HostPasses passes =
      cost_offloaded(program, layout_of(machine, options).gpus_per_node, costs);

  StepTime out;
  out.kernel_times.reserve(costs.size());
  for (const KernelCost& cost : costs) out.kernel_times.push_back(cost.time);

  const ReplayedIteration steady =
      replay_until_steady(program, {program.iteration, program.repeated}, out.kernel_times,
                          replay_settings(machine, coefficients, all_reduce, options));
  out.total = steady.total;
  out.device = steady.device;
  out.host = steady.host;
  out.exposed_host = steady.starved;
  out.copy = steady.copy;
  out.exposed_copy = steady.exposed_copy;
  out.communication = steady.communication;
  out.exposed_communication = steady.exposed_communication;
  out.graphs = steady.graphs;
  for (std::size_t p = 0; p < kStepPhases; ++p) {
    out.phase_device[p] = steady.phase_device[p];
    out.phase_elapsed[p] = steady.phase_elapsed[p];
    out.phase_host[p] = steady.phase_host[p];
  }
  add_straggling(all_reduce.ranks, coefficients.collective, out);
  add_utilization(program, gpu_, out);
  count_oddities(program, costs, model_, out.diagnostics);
  const HostSpeed host = host_of(machine);
  add_band(program, costs, model_, all_reduce, host_doubt(machine, host, all_reduce, options, out),
           out);
  if (passes.time.count() > 0) {
    out.band = with_host_passes(out.band, passes, out.total);
    out.basis += "; the optimizer on the host's processor by a prior";
  }
  return out;
}

GpuStepModel::Doubt GpuStepModel::doubt(const Machine& machine, const StepTimeOptions& options,
                                        const StepTime& time) const {
  const GroupedReduce groups = groups_of(machine, options);
  return {band_terms(program_, costs_, model_, groups.all, time),
          host_doubt(machine, host_of(machine), groups.all, options, time).above};
}

GroupedReduce GpuStepModel::groups_of(const Machine& machine,
                                      const StepTimeOptions& options) const {
  return grouped_reduce(machine, layout_of(machine, options), shard_group(program_),
                        model_.coefficients().collective);
}

/// `host` outlives what is returned.
HostDoubt GpuStepModel::host_doubt(const Machine& machine, const HostSpeed& host,
                                   const AllReduceModel& all_reduce, const StepTimeOptions& options,
                                   const StepTime& time) const {
  const Coefficients& coefficients = model_.coefficients();
  HostDoubt doubt;
  if (coefficients.host.speed == 0) doubt.speed = &host;
  doubt_host(program_, time, host_spread(coefficients, doubt.speed),
             replay_settings(machine, coefficients, all_reduce, options), doubt);
  return doubt;
}

std::vector<PassTime> predict_gpu_passes(const Program& program, const StepTime& step_time,
                                         const Machine& machine, const Coefficients& coefficients,
                                         const StepTimeOptions& options) {
  const AllReduceModel all_reduce =
      all_reduce_model(machine, layout_of(machine, options), coefficients.collective);
  const ReplaySettings settings = replay_settings(machine, coefficients, all_reduce, options);
  std::vector<PassTime> times;
  for (const ExtraPass& pass : program.passes) {
    const ReplayedIteration steady = replay_until_steady(
        program, {pass.instructions, pass.repeated}, step_time.kernel_times, settings);
    const Nanos total = steady.total;
    const Nanos straggling =
        steady.communication > Nanos(0)
            ? wait_for_slowest(all_reduce.ranks, total, coefficients.collective)
            : Nanos(0);
    times.push_back({pass.name, total + straggling, steady.host});
  }
  return times;
}

}  // namespace stoker
