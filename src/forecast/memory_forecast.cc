#include "forecast/memory_forecast.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "forecast/lost_compiler.h"
#include "forecast/memory_model.h"
#include "lower/loop/lower.h"

namespace stoker {
namespace {

/// A search beyond this is of no use to anyone.
constexpr std::int64_t kLargestBatch = 1 << 20;

/// A heap settles later than a caching allocator: thresholds move with what is freed, holes fill.
constexpr int kHeapIterations = 5;
/// What "too much" means where nothing refuses: the system swaps or ends the process.
std::string out_of_memory_words(Bytes needed, Bytes usable) {
  return "the process would need more than " + human_bytes(usable) + " (" + human_bytes(needed) +
         " where nothing limits it): the system swaps, or ends it";
}

/// What a forecast rests on beside the simulation, where that left repetitions out unproven.
std::string presumed_words(bool presumed) {
  return presumed ? "; of many micro-batches those are left out that follow hundreds which changed "
                    "no segment"
                  : "";
}

/// `band` is that of the device's peak: its parts are known as well, or as badly.
Figure bytes_figure(Bytes value, Band band, const std::string& basis) {
  return with_band(static_cast<double>(value.count()), band, basis);
}

/// The forecast that `factor_of(forecast)` times itself is `capacity`. The factor depends on the
/// forecast, so it is approached.
template <class FactorOf>
Bytes forecast_that_fills(Bytes capacity, const FactorOf& factor_of) {
  constexpr int kRounds = 30;  // each shrinks the error by the band's absolute share, a tenth or so
  const auto wanted = static_cast<double>(capacity.count());
  double forecast = wanted;
  for (int round = 0; round < kRounds; ++round)
    forecast = wanted / factor_of(Bytes(static_cast<std::int64_t>(forecast)));
  return Bytes(static_cast<std::int64_t>(forecast));
}

/// What the job needs at most, by the error of forecasts of its kind.
double most_needed(Bytes device_peak, const MemoryErrorCase& error, const Program& program) {
  const double share = workspace_share(program, device_peak);
  return static_cast<double>(device_peak.count()) * (1 + error.need_above(device_peak, share));
}

/// What the device's memory may hold when a share of it is all that PyTorch may take.
double capacity_of(Bytes usable_memory, const AllocatorConfig& allocator, Bytes outside) {
  const auto usable = static_cast<double>(usable_memory.count());
  if (!allocator.memory_fraction) return usable;
  return std::min(usable,
                  *allocator.memory_fraction * usable + static_cast<double>(outside.count()));
}

/// `Answer` is a MemoryForecast or a MemoryVerdict.
template <class Answer>
MemoryVerdictWord verdict_of(const Answer& answer, const Figure& peak, double most_needed,
                             double capacity) {
  if (answer.fits) {
    const bool crosses = most_needed > capacity || answer.only_by_flushing;
    return crosses ? MemoryVerdictWord::kRisky : MemoryVerdictWord::kFits;
  }
  const bool crosses = peak.value > capacity && peak.low <= capacity;
  return crosses ? MemoryVerdictWord::kRisky : MemoryVerdictWord::kDoesNotFit;
}

/// A compiled step may need less than its captured operators say: what Inductor lays over what is
/// decided by rules here, and the two compiled steps whose peak was read (docs/models/compile.md)
/// came out 5 and 6 % too high. A prior.
constexpr double kCompiledBelow = 0.08;

MemoryErrorCase with_compiler(MemoryErrorCase error, const Program& program) {
  const bool compiled = std::any_of(program.kernels.begin(), program.kernels.end(),
                                    [](const Kernel& kernel) { return kernel.compiled; });
  if (compiled) error.below.share = std::max(error.below.share, kCompiledBelow);
  return widened_for_compiler(std::move(error), program);
}

/// CUDA graphs take activations and temporaries from a private pool, and what the eager steps
/// before the capture reserved for theirs may stay beside it: all that does not last, once more.
/// Without graphs nothing is added to the upper reach.
MemoryErrorCase with_private_pool(MemoryErrorCase error, const Program& program,
                                  const MemoryOutcome& outcome) {
  if (!program.cuda_graphs) return error;
  Bytes once_more = outcome.reserved_peak;
  for (const BufferRole role : {BufferRole::kParameter, BufferRole::kModelBuffer,
                                BufferRole::kGradient, BufferRole::kOptimizerState})
    once_more -= outcome.live.by_role[static_cast<std::size_t>(role)];
  once_more = std::max(Bytes(0), once_more);
  const Bytes device_peak = outcome.reserved_peak + outside_bytes(program);
  for (Reach* reach : {&error.above, &error.need.reach}) {
    reach->share +=
        static_cast<double>(once_more.count()) / static_cast<double>(device_peak.count());
    reach->least += once_more;
  }
  return error;
}

}  // namespace

std::string_view name_of(MemoryVerdictWord verdict) {
  switch (verdict) {
    case MemoryVerdictWord::kFits:
      return "FITS";
    case MemoryVerdictWord::kRisky:
      return "RISKY";
    case MemoryVerdictWord::kDoesNotFit:
      break;
  }
  return "DOES NOT FIT";
}

ReplayOptions replay_options(const Machine& machine, const AllocatorConfig& allocator,
                             ReplayDetail detail) {
  ReplayOptions options{.allocator = allocator, .detail = detail};
  const MemoryModel& model = memory_model_of(machine.device);
  if (!model.heap) return options;
  options.allocator = {};
  options.heap = model.heap;
  options.iterations = kHeapIterations;
  return options;
}

Bytes fresh_bytes(const Program& program, const Machine& machine) {
  const MemoryOutcome outcome =
      replay(program, replay_options(machine, {}, ReplayDetail::kVerdict));
  return outcome.iterations.empty() ? Bytes(0) : outcome.iterations.back().fresh;
}

std::string memory_error_case(const Program& program, const Job& job, const Machine& machine) {
  const MemoryModel& model = memory_model_of(machine.device);
  if (!model.error_case.empty())
    return std::string(model.error_case) + (job.compile ? "-compiled" : "");
  double convolution = 0;
  double total = 0;
  bool attention = false;
  for (const Kernel& kernel : program.kernels) {
    total += kernel.flops.count();
    if (std::holds_alternative<ConvolutionShape>(kernel.shape)) convolution += kernel.flops.count();
    // Attention as one kernel, or as products batched over heads.
    const auto* product = std::get_if<GemmShape>(&kernel.shape);
    attention = attention || kernel.kernel_class == KernelClass::kAttention ||
                (product != nullptr && product->batch > 1);
  }
  const std::string kind = convolution > 0.5 * total ? "cnn" : attention ? "transformer" : "other";
  const bool half = job.precision != Precision::kFp32 && job.precision != Precision::kTf32;
  const std::string profile = job.cudnn == CudnnProfile::kBenchmark ? "benchmark" : "default";
  return kind + (half ? "-amp-" : "-fp32-") + profile;
}

double workspace_share(const Program& program, Bytes device_peak) {
  Bytes largest;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.optional && buffer.role == BufferRole::kWorkspace)
      largest = std::max(largest, buffer.bytes);
  }
  return static_cast<double>(largest.count()) /
         static_cast<double>(std::max(device_peak, Bytes(1)).count());
}

std::int64_t last_batch_at(const LastBatch& rule, std::int64_t batch, int gpus) {
  if (rule.samples <= 0) return rule.given < batch ? rule.given : 0;
  const std::int64_t of_a_rank = (rule.samples + gpus - 1) / gpus;
  return of_a_rank % batch;
}

MemoryVerdict judge_memory(const Program& program, const Machine& machine,
                           const AllocatorConfig& allocator, const MemoryOutcome& unconstrained) {
  const MemoryModel& model = memory_model_of(machine.device);
  MemoryVerdict verdict;
  const Bytes usable = machine.device->usable_memory;
  const Bytes outside = outside_bytes(program);
  verdict.device_peak = unconstrained.reserved_peak + outside;
  if (outside > usable) {
    verdict.out_of_memory = std::string(model.outside) + " alone take " + human_bytes(outside);
    verdict.failure_words = "before the first iteration";
    return verdict;
  }
  // With a memory fraction, less than what is usable may be allowed. A run that failed without
  // limits asked for more than any device has, and its peak is that of its beginning only.
  if (!unconstrained.failure && verdict.device_peak <= usable && !allocator.memory_fraction) {
    verdict.fits = true;
    return verdict;
  }
  ReplayOptions options = replay_options(machine, allocator, ReplayDetail::kVerdict);
  options.capacity = usable - outside;
  options.total = usable;
  const MemoryOutcome constrained = replay(program, options);
  verdict.fits = constrained.fits();
  verdict.only_by_flushing = constrained.fits() && constrained.retries > 0;
  if (constrained.failure) {
    verdict.out_of_memory = model.refuses ? constrained.failure->numbers.text()
                                          : out_of_memory_words(verdict.device_peak, usable);
    verdict.failure_words = words_of(program, constrained.failure->moment);
  }
  return verdict;
}

MemoryVerdict judge_memory(const Program& program, const Machine& machine,
                           const AllocatorConfig& allocator) {
  const ReplayOptions options = replay_options(machine, allocator, ReplayDetail::kVerdict);
  return judge_memory(program, machine, allocator, replay(program, options));
}

MemoryForecast forecast_memory(const Program& program, const Machine& machine,
                               const AllocatorConfig& allocator, const Knowledge& knowledge,
                               const std::string& error_case) {
  MemoryForecast forecast;
  forecast.outcome = replay(program, replay_options(machine, allocator));
  forecast.peak_words = peak_words(program, forecast.outcome);
  forecast.outside = program.outside;
  forecast.usable = machine.device->usable_memory;
  forecast.nameplate = machine.device->memory;
  const MemoryVerdict verdict = judge_memory(program, machine, allocator, forecast.outcome);
  forecast.fits = verdict.fits;
  forecast.only_by_flushing = verdict.only_by_flushing;
  forecast.out_of_memory = verdict.out_of_memory;
  forecast.failure_words = verdict.failure_words;
  const MemoryErrorCase error = with_compiler(
      with_private_pool(knowledge.memory_case(error_case), program, forecast.outcome), program);
  const std::string basis = std::string(memory_model_of(machine.device).simulation) +
                            presumed_words(forecast.outcome.presumed > 0) + "; " + error.basis;
  const Bytes device_peak = forecast.outcome.reserved_peak + outside_bytes(program);
  const Band band = error.band_at(device_peak);
  forecast.device_peak = bytes_figure(device_peak, band, basis);
  forecast.reserved_peak = bytes_figure(forecast.outcome.reserved_peak, band, basis);
  forecast.allocated_peak = bytes_figure(forecast.outcome.allocated_peak, band, basis);
  forecast.verdict =
      verdict_of(forecast, forecast.device_peak, most_needed(device_peak, error, program),
                 capacity_of(forecast.usable, allocator, outside_bytes(program)));
  return forecast;
}

MemoryVerdictWord word_of(const MemoryVerdict& verdict, const Program& program,
                          const Machine& machine, const AllocatorConfig& allocator,
                          const Knowledge& knowledge, const Job& job) {
  MemoryErrorCase error =
      with_compiler(knowledge.memory_case(memory_error_case(program, job, machine)), program);
  if (program.cuda_graphs)
    error = with_private_pool(error, program, replay(program, replay_options(machine, allocator)));
  const Figure peak =
      bytes_figure(verdict.device_peak, error.band_at(verdict.device_peak), error.basis);
  return verdict_of(verdict, peak, most_needed(verdict.device_peak, error, program),
                    capacity_of(machine.device->usable_memory, allocator, outside_bytes(program)));
}

namespace {

/// The largest batch up to `most` whose verdict is kFits, where the error's reach depends on the
/// program and no capacity stands for it; 0: none.
std::int64_t largest_sure_batch(const LowerAt& lower_at, std::int64_t minimum, std::int64_t most,
                                const Machine& machine, const AllocatorConfig& allocator,
                                const Knowledge& knowledge, const Job& job) {
  const auto fits = [&](std::int64_t batch) {
    const auto program = lower_at(batch);
    return program && word_of(judge_memory(*program, machine, allocator), *program, machine,
                              allocator, knowledge, job) == MemoryVerdictWord::kFits;
  };
  std::int64_t sure = minimum - 1, beyond = most + 1;
  while (beyond - sure > 1) {
    const std::int64_t middle = sure + (beyond - sure) / 2;
    (fits(middle) ? sure : beyond) = middle;
  }
  return sure < minimum ? 0 : sure;
}

Result<BatchLimits> limits_of(const Step& step, const Job& job, const Machine& machine,
                              const AllocatorConfig& allocator, const Knowledge& knowledge,
                              const LastBatch& last_batch) {
  const auto prepared = TRY(prepare(step, job));
  const std::int64_t minimum = std::max<std::int64_t>(1, step.dimensions[0].minimum);
  const LowerAt lower_at = [&](std::int64_t batch) -> Result<Program> {
    Job at = job;
    at.batch = std::max(batch, minimum);
    at.last_batch = last_batch_at(last_batch, at.batch, at.gpus);
    return lower(prepared, at, machine);
  };
  const auto search = [&](const LowerAt& programs, Bytes usable, std::int64_t hint,
                          CacheFlush flush = CacheFlush::kAllowed) {
    LargestBatchOptions options;
    options.flush = flush;
    options.detail = LargestBatchDetail::kBatch;
    options.limit = step.dimensions[0].maximum > 0 ? step.dimensions[0].maximum : kLargestBatch;
    options.hint = hint;
    options.replay = replay_options(machine, allocator, ReplayDetail::kVerdict);
    return find_largest_batch(programs, usable, options);
  };
  const Bytes usable = machine.device->usable_memory;
  const auto nominal = TRY(search(lower_at, usable, 0));
  const auto program = TRY(lower_at(std::max<std::int64_t>(nominal.batch, 1)));
  BatchLimits limits;
  limits.value = limits.low = limits.high = nominal.batch;
  limits.first_failing = nominal.first_failing.value_or(0);
  limits.missing = nominal.missing.value_or(Bytes(0));
  if (const auto& failure = nominal.outcome.failure; nominal.batch == 0 && failure) {
    const int pass = failure->moment.pass;
    if (pass >= 0 && static_cast<std::size_t>(pass) < program.passes.size())
      limits.failing_pass = program.passes[static_cast<std::size_t>(pass)].name;
  }
  MemoryErrorCase error = widened_for_compiler(
      knowledge.memory_case(memory_error_case(program, job, machine)), program);
  if (program.cuda_graphs)
    error = with_private_pool(error, program, replay(program, replay_options(machine, allocator)));
  bool presumed = nominal.presumed;
  const auto tell_basis = [&] {
    limits.basis = std::string(memory_model_of(machine.device).simulation) + " under capacity" +
                   presumed_words(presumed) + "; " + error.basis;
  };
  tell_basis();
  if (nominal.batch == 0) return limits;
  const LowerAt near = [&](std::int64_t batch) {  // both begin where the first search ended
    return batch == nominal.batch ? Result<Program>(program) : lower_at(batch);
  };
  if (program.cuda_graphs || error.need.workspaces > 0) {
    limits.low =
        largest_sure_batch(lower_at, minimum, limits.value, machine, allocator, knowledge, job);
  } else {
    // A job that needs as much as its forecast allows still fits, without giving the cache back,
    // when the forecast's own peak is no more than this: what verdict_of() calls FITS.
    const Bytes sure(
        static_cast<std::int64_t>(capacity_of(usable, allocator, outside_bytes(program))));
    const Bytes filling = forecast_that_fills(
        sure, [&](Bytes forecast) { return 1 + error.need_above(forecast, 0); });
    const auto safe = TRY(search(near, filling, nominal.batch, CacheFlush::kNever));
    presumed = presumed || safe.presumed;
    limits.low = std::min(safe.batch, limits.value);
  }
  const Bytes overflowing = forecast_that_fills(
      usable, [&](Bytes forecast) { return 1 - std::min(error.band_at(forecast).below, 0.9); });
  const auto lucky = TRY(search(near, overflowing, nominal.batch));
  limits.high = std::max(lucky.batch, limits.value);
  presumed = presumed || lucky.presumed;
  tell_basis();
  return limits;
}

}  // namespace

Result<BatchLimits> forecast_batch_limits(const Step& step, const Job& job, const Machine& machine,
                                          const AllocatorConfig& allocator,
                                          const Knowledge& knowledge, const LastBatch& last_batch) {
  BatchLimits limits = TRY(limits_of(step, job, machine, allocator, knowledge, last_batch));
  if (!job.validation_batch) return limits;
  Job training = job;
  training.validation_batch.reset();
  const BatchLimits alone =
      TRY(limits_of(step, training, machine, allocator, knowledge, last_batch));
  if (alone.low > limits.low) limits.low_in_training = alone.low;
  return limits;
}

}  // namespace stoker
