#include "forecast/forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/counted.h"
#include "base/text.h"
#include "forecast/cost.h"
#include "forecast/lost_compiler.h"
#include "forecast/memory_model.h"
#include "forecast/node_share.h"
#include "forecast/settings.h"
#include "forecast/short_batch.h"
#include "lower/loop/backend_of.h"
#include "lower/loop/lower.h"
#include "timing/learned/learned_pace.h"
#include "timing/step/predict_step.h"

namespace stoker {
namespace {

Nanos scaled(Nanos time, double factor) { return Nanos(time.count() * factor); }

StepTimeOptions step_options(const Job& job, const Program& program, const Machine& machine) {
  StepTimeOptions options;
  options.copy = job.copy;
  options.gpus = gpus_per_node(job.gpus, job.nodes);
  options.nodes = job.nodes;
  options.threads = job.threads;
  if (memory_model_of(machine.device).heap) options.fresh = fresh_bytes(program, machine);
  return options;
}

/// On each of `gpus`, which run the same program.
std::vector<StepTime> timed(const Scenario& s, std::span<const int> gpus, const Program& program,
                            const Coefficients& coefficients) {
  StepTimeOptions common = step_options(s.job, program, s.machine);
  common.pace = s.pace;
  const Cpu* cpu = s.machine.device.cpu();
  const int threads = cpu != nullptr && s.job.threads == 0 ? cpu->cores : s.job.threads;
  const LearnedPace learned = learned_pace(s.machine.device->calibration.get(), threads);
  if (cpu == nullptr) common.pace *= learned.step;
  std::vector<StepTimeOptions> options;
  for (const int count : gpus) {
    options.push_back(common);
    options.back().gpus = gpus_per_node(count, s.job.nodes);
  }
  std::vector<StepTime> times = predict_steps(program, s.machine, coefficients, options);
  for (StepTime& time : times) {
    if (cpu != nullptr) apply_pace(learned, program, time);
    widen_for_compiler(program, time);
  }
  return times;
}

StepTime timed(const Scenario& s, const Program& program, const Coefficients& coefficients) {
  return std::move(timed(s, std::span(&s.job.gpus, 1), program, coefficients).front());
}

/// One optimizer step takes `accumulate` batches from the loader.
Consumer slower_consumer(const StepTime& time, int accumulate, double step_factor) {
  const Nanos step = scaled(time.total, step_factor / accumulate);
  return {.step = step, .host_cpu = std::min(step, scaled(time.host, 1.0 / accumulate))};
}

/// Samples/s of the whole job when a batch leaves the loader every `interval` of each rank.
double job_rate(const Job& job, Nanos per_micro_batch) {
  return static_cast<double>(job.batch) * job.gpus / seconds(per_micro_batch);
}

double simulated_rate(const Scenario& s, const StepTime& time, double step_factor,
                      double cpu_factor) {
  const auto loader =
      simulate_loader(loader_of(s), at_band_end(s.sample, cpu_factor), host_share(s),
                      slower_consumer(time, s.job.accumulate, step_factor));
  return loader.samples_per_s * s.job.gpus;
}

std::string input_words(InputLimit limit) {
  switch (limit) {
    case InputLimit::kCores:
      return "preparing samples (CPU cores)";
    case InputLimit::kWorkers:
      return "preparing samples (too few workers)";
    case InputLimit::kMainThread:
      return "the loader's main thread";
    case InputLimit::kPinThread:
      return "the pin-memory thread";
    case InputLimit::kDisk:
      return "reading from disk";
    case InputLimit::kInProcess:
      return "loading in the training process (workers = 0)";
    case InputLimit::kJitter:
      return "uneven sample cost (jitter)";
    case InputLimit::kStep:
      return "the input pipeline";
  }
  return "the input pipeline";
}

/// From this share of the step on, what the GPU waits for is named as the limit rather than the
/// GPU.
constexpr double kNamedWait = 0.25;

std::string communication_words(Parallel parallel) {
  switch (parallel) {
    case Parallel::kDdp:
      return "gradient all-reduce";
    case Parallel::kDataParallel:
      return "copies between the GPUs (DataParallel)";
    case Parallel::kFsdpZero2:
    case Parallel::kFsdpZero3:
      return "all-gather and reduce-scatter (FSDP)";
  }
  return "communication";
}

/// On a CPU operators and what stands around them follow one another.
LimiterFact cpu_limiter(const StepTime& t, double rate) {
  if (t.host > t.device) return {Limiter::kGpuLaunch, "PyTorch around operators (CPU)", rate};
  return {Limiter::kGpuCompute, "operators (CPU)", rate};
}

/// The GPUs wait longer for the optimizer on the host than they compute.
bool update_on_host_limits(const Scenario& s, const StepTime& t) {
  const auto optimizer = static_cast<std::size_t>(StepPhase::kOptimizer);
  return s.job.fsdp_offload && t.phase_elapsed[optimizer] - t.phase_device[optimizer] > t.device;
}

LimiterFact gpu_limiter(const Scenario& s, const StepTime& t, double rate) {
  if (update_on_host_limits(s, t))
    return {Limiter::kHostOptimizer, "the optimizer on the host's processor", rate};
  const std::vector<StepBound> bounds = step_bounds(t);
  const bool host_first = !bounds.empty() && std::string_view(bounds[0].name) == "host";
  if (host_first || t.exposed_host.count() > kNamedWait * t.total.count()) {
    return {Limiter::kGpuLaunch, "launching kernels (Python and CPU)", rate};
  }
  if (t.exposed_communication.count() > kNamedWait * t.total.count()) {
    return {Limiter::kCommunication, communication_words(s.job.parallel), rate};
  }
  if (t.exposed_copy.count() > kNamedWait * t.total.count())
    return {Limiter::kCopy, "host-to-device copies", rate};
  return {Limiter::kGpuCompute, "GPU compute", rate};
}

LimiterFact device_limiter(const Scenario& s, const StepTime& t) {
  const double rate = job_rate(s.job, scaled(t.total, 1.0 / s.job.accumulate));
  return s.machine.device.visit([&](const Gpu&) { return gpu_limiter(s, t, rate); },
                                [&](const Cpu&) { return cpu_limiter(t, rate); });
}

void add_limiters(const Scenario& s, Forecast& f) {
  const LimiterFact device = device_limiter(s, f.time);
  const LimiterFact input{Limiter::kInput, input_words(f.input.limit), f.input.samples_per_s.value};
  if (!f.input.known) {
    f.limiter = f.next_limiter = device;
    return;
  }
  const bool input_limits = input.samples_per_s < device.samples_per_s;
  f.limiter = input_limits ? input : device;
  f.next_limiter = input_limits ? device : input;
}

/// Two independent sources of error: the step and the cost of a sample. Each is moved alone; the
/// effects add in quadrature.
Figure throughput_figure(const Scenario& s, const StepTime& time, double value,
                         const std::string& basis) {
  const double slow_step = simulated_rate(s, time, 1 + time.band.above, 1);
  const double fast_step = simulated_rate(s, time, 1 - time.band.below, 1);
  double slow_input = value;
  double fast_input = value;
  if (s.sample.known) {
    slow_input = simulated_rate(s, time, 1, 1 + s.sample.band.above);
    fast_input = simulated_rate(s, time, 1, 1 - s.sample.band.below);
  }
  const double below =
      std::hypot(std::max(0.0, value - slow_step), std::max(0.0, value - slow_input));
  const double above =
      std::hypot(std::max(0.0, fast_step - value), std::max(0.0, fast_input - value));
  return {value, value - std::min(below, 0.95 * value), value + above, basis};
}

void add_time_figures(Forecast& f) {
  const StepTime& t = f.time;
  const auto phase = [&](StepPhase p) {
    return with_band(milliseconds(t.phase_elapsed[static_cast<std::size_t>(p)]), t.band, t.basis);
  };
  f.step_ms = with_band(milliseconds(t.total), t.band, t.basis);
  f.load_ms = phase(StepPhase::kLoad);
  f.forward_ms = phase(StepPhase::kForward);
  const Figure loss = phase(StepPhase::kLoss);
  f.forward_ms.value += loss.value;
  f.forward_ms.low += loss.low;
  f.forward_ms.high += loss.high;
  f.backward_ms = phase(StepPhase::kBackward);
  f.optimizer_ms = phase(StepPhase::kOptimizer);
  f.host_ms = with_band(milliseconds(t.host), t.band, t.basis);
  f.mfu = exact(t.mfu, t.basis);
  f.mfu.low = t.mfu / (1 + t.band.above);
  f.mfu.high = std::min(1.0, t.mfu / std::max(0.05, 1 - t.band.below));
}

/// Busy falls by as much as the GPU waits for input.
void add_utilization(const Scenario& s, Forecast& f) {
  const double gpu_rate = job_rate(s.job, scaled(f.time.total, 1.0 / s.job.accumulate));
  const auto share = [&](double rate) {
    return std::min(1.0, f.time.busy * std::min(1.0, rate / gpu_rate));
  };
  f.gpu_busy = {share(f.samples_per_s.value), share(f.samples_per_s.low),
                share(f.samples_per_s.high), f.samples_per_s.basis};
  f.mfu.value *= std::min(1.0, f.samples_per_s.value / gpu_rate);
  f.mfu.low *= std::min(1.0, f.samples_per_s.low / gpu_rate);
  f.mfu.low = std::min(f.mfu.low, f.mfu.value);
  f.mfu.high = std::max(f.mfu.high, f.mfu.value);
}

/// `fixed`: share of a step that the short batch at the end takes as well.
void add_epoch(const Scenario& s, double fixed, Forecast& f) {
  if (s.dataset_samples <= 0) return;
  const std::int64_t a_step = s.job.batch * s.job.gpus * s.job.accumulate;
  if (a_step > s.dataset_samples) {
    f.diagnostics.add(
        "epoch_below_step", Severity::kWarning,
        "an epoch of " + counted(s.dataset_samples, "sample") + " is less than one step of " +
            with_commas(a_step) +
            " (batch x GPUs x accumulate): a loop with drop_last makes no step at all, any other "
            "a smaller one than is forecast here; take fewer GPUs or a smaller batch");
  }
  // Beside whole batches at their rate: the first one's coming, and what a short one costs more.
  double beside = seconds(f.input.known ? f.input.loader.epoch_start : Nanos(0));
  if (const std::int64_t rest = short_batch(s); rest > 0 && a_step <= s.dataset_samples) {
    const double missing = 1 - static_cast<double>(rest) / static_cast<double>(s.job.batch);
    beside += fixed * missing * seconds(f.time.total) / s.job.accumulate;
  }
  const std::int64_t left_out =
      s.loader.drop_last ? s.dataset_samples % (s.job.batch * s.job.gpus) : 0;
  const auto samples = static_cast<double>(s.dataset_samples - left_out);
  const auto epoch = [&](double rate) {
    // No epoch is shorter than its one step.
    return std::max(static_cast<double>(a_step), samples) / rate + beside;
  };
  f.epoch_s = {epoch(f.samples_per_s.value), epoch(f.samples_per_s.high),
               epoch(f.samples_per_s.low), f.samples_per_s.basis};
}

/// Sums the kernels that an iteration launches; `step` is the one that the program was lowered
/// from.
void add_module_times(const Step& step, const Program& program, Forecast& f) {
  std::vector<Nanos> by_module(step.module_names.size());
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t k, std::int64_t times) {
    if (k >= f.time.kernel_times.size() || kernel.source >= step.operators.size()) return;
    by_module[index(step.operators[kernel.source].module)] +=
        f.time.kernel_times[k] * static_cast<double>(times);
  });
  for (std::size_t m = 0; m < by_module.size(); ++m) {
    if (by_module[m].count() > 0)
      f.module_time.emplace_back(ModuleId(static_cast<std::uint32_t>(m)), by_module[m]);
  }
  std::stable_sort(f.module_time.begin(), f.module_time.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
}

}  // namespace

LoaderSettings loader_of(const Scenario& s) {
  LoaderSettings loader = s.loader;
  loader.batch = s.job.batch;
  loader.dataset_samples = s.dataset_samples;
  return loader;
}

Consumer consumer_of(const Scenario& s, const StepTime& time) {
  return slower_consumer(time, s.job.accumulate, 1);
}

std::int64_t short_batch(const Scenario& s) {
  if (s.loader.drop_last || s.dataset_samples <= 0) return 0;
  return (s.dataset_samples + s.job.gpus - 1) / s.job.gpus % s.job.batch;  // padded to equal shares
}

double fixed_share(const Scenario& s, const StepTime& time, const Knowledge& knowledge) {
  const std::int64_t rest = short_batch(s);
  if (rest == 0) return 1;
  Scenario shorter = s;
  set_batch(shorter, rest);
  const auto at_rest = step_time_of(shorter, knowledge);
  if (!at_rest || time.total.count() <= 0) return 1;
  const double share = static_cast<double>(rest) / static_cast<double>(s.job.batch);
  return std::clamp((at_rest->total / time.total - share) / (1 - share), 0.0, 1.0);
}

HostShare host_share(const Host& host, int ranks) {
  HostShare share;
  share.cores = std::ceil(host.cores);
  if (share.cores > host.cores) share.quota.cores = host.cores;
  share.ranks = ranks;
  share.relative_core_speed = host.relative_core_speed;
  share.memory = host.memory;
  share.disk_bandwidth = host.disk_bandwidth;
  share.disk_iops = host.disk_iops;
  return share;
}

HostShare host_share(const Scenario& s) {
  HostShare share = host_share(s.machine.host, gpus_per_node(s.job.gpus, s.job.nodes));
  share.all_ranks = s.job.gpus;
  return share;
}

LoaderForecast input_ceiling(const Scenario& s) {
  constexpr Nanos kInstant{1e3};  // a step of a microsecond: the loader is the only limit
  return simulate_loader(loader_of(s), s.sample, host_share(s), kInstant);
}

double arithmetic(const Program& program) {
  double flops = 0;
  program.for_each_launch([&](const Kernel& kernel, std::uint32_t, std::int64_t times) {
    flops += kernel.flops.count() * static_cast<double>(times);
  });
  return flops;
}

/// The share of a step's arithmetic that the model asks for: what checkpointing computes a second
/// time is work of the device, but none of the model's FLOPs.
Result<double> useful_share(const Scenario& s, const Program& program) {
  if (s.job.checkpoint.empty()) return 1.0;
  Job once = s.job;
  once.checkpoint.clear();
  const Program plain = TRY(lower(*s.step, once, s.machine));
  const double all = arithmetic(program);
  return all > 0 ? std::min(1.0, arithmetic(plain) / all) : 1.0;
}

Result<StepTime> step_time_of(const Scenario& s, const Program& program,
                              const Knowledge& knowledge) {
  const Coefficients coefficients = TRY(knowledge.timing.for_device(s.machine.device));
  return timed(s, program, coefficients);
}

Result<std::vector<StepTime>> step_times_of(const Scenario& s, std::span<const int> gpus,
                                            const Program& program, const Knowledge& knowledge) {
  const Coefficients coefficients = TRY(knowledge.timing.for_device(s.machine.device));
  return timed(s, gpus, program, coefficients);
}

Result<StepTime> step_time_of(const Scenario& s, const Knowledge& knowledge) {
  const auto program = TRY(lower(*s.step, s.job, s.machine));
  return step_time_of(s, program, knowledge);
}

Throughput throughput_of(const Scenario& s, const StepTime& time) {
  if (!s.sample.known) return {job_rate(s.job, scaled(time.total, 1.0 / s.job.accumulate)), {}};
  Throughput result;
  result.loader = simulate_loader(loader_of(s), s.sample, host_share(s), consumer_of(s, time));
  result.samples_per_s = result.loader.samples_per_s * s.job.gpus;
  return result;
}

Result<Forecast> forecast(const Scenario& s, const Knowledge& knowledge) {
  const PreparedStep prepared = TRY(prepare(*s.step, s.job));
  const Program program = TRY(lower(prepared, s.job, s.machine));
  const Coefficients coefficients = TRY(knowledge.timing.for_device(s.machine.device));
  Forecast f;
  f.time = timed(s, program, coefficients);
  f.job = backend_of(s.machine.device)->as_run(s.job);  // as it really runs
  f.loader = loader_of(s);
  f.gpu_name = s.machine.device->name;
  f.memory = forecast_memory(program, s.machine, s.allocator, knowledge,
                             memory_error_case(program, s.job, s.machine));
  f.time.mfu *= TRY(useful_share(s, program));
  add_time_figures(f);
  if (!program.passes.empty()) {
    f.passes = predict_passes(program, f.time, s.machine, coefficients,
                              step_options(s.job, program, s.machine));
  }
  const Throughput rate = throughput_of(s, f.time);
  f.input.loader = rate.loader;
  f.input.known = s.sample.known;
  const std::string basis = s.sample.known ? f.time.basis + "; " + s.sample.basis : f.time.basis;
  f.samples_per_s = throughput_figure(s, f.time, rate.samples_per_s, basis);
  if (s.sample.known) {
    const LoaderForecast ceiling = input_ceiling(s);
    f.input.samples_per_s =
        with_band(ceiling.samples_per_s * s.job.gpus, s.sample.band, s.sample.basis);
    f.input.limit = ceiling.limit;
  }
  add_utilization(s, f);
  add_epoch(s, fixed_share(s, f.time, knowledge), f);
  f.price_per_gpu_hour = s.price_per_gpu_hour;
  add_limiters(s, f);
  f.run = run_time_of(s, program, f);
  add_cost(f);
  f.energy =
      estimate_energy(s.machine.device.facts(), {s.job.gpus, f.gpu_busy, f.samples_per_s, f.epoch_s,
                                                 f.run.seconds_total, f.run.seconds_start_up});
  add_module_times(prepared.runs(), program, f);
  f.diagnostics.merge(program.diagnostics);
  f.diagnostics.merge(f.time.diagnostics);
  return f;
}

}  // namespace stoker
