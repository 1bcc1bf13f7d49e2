#include <fmt/core.h>

#include "base/counted.h"
#include "base/text.h"
#include "lower/loop/untrained.h"
#include "report/model/report.h"
#include "report/text/cpu_text.h"
#include "report/text/layout.h"
#include "report/text/memory_words.h"
#include "report/text/plan_words.h"

namespace stoker {
namespace {

using namespace layout;

/// "14.2 GiB, +28 % time"
std::string effect(const Remedy& r) {
  std::string text = human_bytes(r.device_peak);
  if (r.only_by_flushing) text += " with a full cache, runs here by emptying it";
  if (r.time_change) text += fmt::format(", {:+.0f} % time", 100 * *r.time_change);
  return text + (r.estimate ? ", an estimate" : "");
}

/// "Fits with --checkpoint blocks: 9.1 GiB, +28 % time"
std::string cure(const Remedy& r) {
  return fmt::format("  {} with {}: {}\n", r.verdict == MemoryVerdictWord::kFits ? "Fits" : "Risky",
                     r.settings.empty() ? r.what : r.settings, effect(r));
}

/// What would make a job fit that does not; what is as risky as it is now is no cure.
std::string cures(const MemoryAdvice& advice, MemoryVerdictWord now) {
  constexpr std::size_t kMostCures = 3;
  std::string text;
  std::size_t shown = 0;
  for (const Remedy& r : advice.remedies.list) {
    if (r.verdict >= now || shown++ == kMostCures) break;
    text += cure(r);
  }
  if (advice.remedies.together && advice.remedies.together->verdict < now) {
    const std::string all = cure(*advice.remedies.together);
    text = advice.remedies.together->verdict == MemoryVerdictWord::kFits ? all + text : text + all;
  }
  if (advice.remedies.fsdp_gpus > 0) {
    text += fmt::format("  Fits with --parallel fsdp --gpus {} (the number doubled until it did)\n",
                        advice.remedies.fsdp_gpus);
  }
  return text;
}

/// "batch up to 380 is safe, up to 463 may run": by the band, and by the forecast itself.
std::string batch_limits_text(const BatchLimits& limits, const Job& job) {
  if (limits.low_in_training > 0 && job.validation_batch) {
    const std::string safe = limits.low > 0 ? fmt::format("batch up to {} is safe", limits.low)
                                            : std::string("no batch is safe");
    return fmt::format(
        "{} beside the validation in batches of {}{}; in training alone up to {} is: a smaller "
        "validation batch (--validation) gives that back",
        safe, *job.validation_batch,
        limits.value > limits.low ? fmt::format(", up to {} may run", limits.value) : "",
        limits.low_in_training);
  }
  if (limits.value <= 0) return "no batch is safe";
  if (limits.low <= 0) return fmt::format("no batch is safe, up to {} may run", limits.value);
  if (limits.low == limits.value) return fmt::format("batch up to {} is safe", limits.low);
  return fmt::format("batch up to {} is safe, up to {} may run", limits.low, limits.value);
}

std::string verdict(const Prediction& prediction, bool cpu) {
  std::string text;
  const Forecast& f = prediction.forecast;
  const std::optional<BatchLimits>& limits = prediction.limits;
  const MemoryForecast& m = f.memory;
  if (!m.fits) {
    text =
        fmt::format("{}: batch {} needs {} of {} ({})\n  {}{}\n", name_of(m.verdict), f.job.batch,
                    gib(m.device_peak), human_bytes(m.usable), f.gpu_name, m.out_of_memory,
                    m.failure_words.empty() ? "" : fmt::format(" ({})", m.failure_words));
    if (m.verdict == MemoryVerdictWord::kRisky)
      text += "  By the forecast it does not run; at the low end of its band it would.\n";
    if (limits && limits->value > 0) {
      std::string limits_text = batch_limits_text(*limits, f.job);
      limits_text.front() = static_cast<char>(std::toupper(limits_text.front()));
      text += "  " + limits_text + ".\n";
    }
    if (prediction.advice) text += cures(*prediction.advice, m.verdict);
    return text;
  }
  text = fmt::format("{}{}: {} of {}{}", name_of(m.verdict),
                     f.diagnostics.count(kNotTrained) > 0 ? ", those parameters untrained" : "",
                     gib(m.device_peak), human_bytes(m.usable), cpu ? "" : " per GPU");
  const bool tries = f.job.cudnn == CudnnProfile::kBenchmark;
  const bool above = m.device_peak.high > static_cast<double>(m.usable.count());
  if (m.only_by_flushing)
    text += "; only by emptying PyTorch's cache again and again, which makes steps slower";
  else if (m.verdict == MemoryVerdictWord::kRisky && tries && !above)
    text += "; what cuDNN's other algorithms may need reaches beyond it";
  else if (m.verdict == MemoryVerdictWord::kFits && tries && above)
    text += "; cudnn.benchmark takes what the band has above it only where memory is free";
  else if (m.verdict == MemoryVerdictWord::kRisky) text += "; the band reaches beyond it";
  if (limits) text += "; " + batch_limits_text(*limits, f.job);
  return text + "\n";
}

std::string speed(const Forecast& f, const ReportContext& context) {
  std::string text = fmt::format("  {} {}/s", rate(f.samples_per_s), context.sample_word);
  if (f.epoch_s.value > 0) {
    text += fmt::format("; epoch of {}: {} [{}-{}]", with_commas(context.dataset_samples),
                        human_time(kSecond * f.epoch_s.value), human_time(kSecond * f.epoch_s.low),
                        human_time(kSecond * f.epoch_s.high));
  }
  if (f.epoch_cost.value > 0) text += ", " + money(f.epoch_cost.value, context.currency);
  if (f.run.epochs > 0) {
    const Figure& total = f.run.seconds_total;
    text += fmt::format("; run of {}: {} [{}-{}]", with_commas(f.run.epochs),
                        human_time(kSecond * total.value), human_time(kSecond * total.low),
                        human_time(kSecond * total.high));
    if (f.run_cost.value > 0) text += ", " + money(f.run_cost.value, context.currency);
  }
  text += fmt::format("\n  Limited by {}", f.limiter.what);
  if (f.next_limiter.what != f.limiter.what) {
    text += fmt::format("; next: {} at {} {}/s", f.next_limiter.what,
                        number(f.next_limiter.samples_per_s), context.sample_word);
  }
  return text + "\n";
}

/// "bound by kernels, 41.2 ms (arithmetic 61 %, memory 35 %, latency 4 %); next: launching them
/// ..."
std::string bound_words(const StepTime& t) {
  const std::vector<StepBound> bounds = step_bounds(t);
  if (bounds.empty()) return {};
  std::string text =
      fmt::format("bound by {}, {} ms", bounds[0].what, number(milliseconds(bounds[0].time)));
  const double kernels =
      t.bound_device[0].count() + t.bound_device[1].count() + t.bound_device[2].count();
  if (std::string_view(bounds[0].name) == "kernels" && kernels > 0) {
    const auto share = [&](Bound b) {
      return percent(t.bound_device[static_cast<std::size_t>(b)].count() / kernels);
    };
    text += fmt::format(" (arithmetic {}, memory {}, other {})", share(Bound::kCompute),
                        share(Bound::kMemory), share(Bound::kLatency));
  }
  if (bounds.size() > 1)
    text += fmt::format("; next: {}, {} ms", bounds[1].what, number(milliseconds(bounds[1].time)));
  return text;
}

/// "draws about 210 W [104-300], 0.21 kWh [0.11-0.31] an epoch: estimate ..."
std::string energy_line(const EnergyForecast& e, int gpus) {
  std::string text = fmt::format("{} about {} W [{}-{}]", gpus > 1 ? "all GPUs draw" : "draws",
                                 number(e.watts.value), number(e.watts.low), number(e.watts.high));
  if (e.epoch_kwh.value > 0) text += ", " + energy(e.epoch_kwh) + " an epoch";
  if (e.run_kwh.value > 0) text += ", " + energy(e.run_kwh) + " the run";
  return continued(text + ": " + e.watts.basis);
}

std::string time_block(const Forecast& f, const ReportContext& context) {
  const StepTime& t = f.time;
  const auto host = [&](StepPhase p) {
    return number(milliseconds(t.phase_host[static_cast<std::size_t>(p)]));
  };
  std::string text = fmt::format("Step      {}\n", millis(f.step_ms));
  text += fmt::format(
      "          forward {} ms, backward {} ms, optimizer {} ms{}\n", number(f.forward_ms.value),
      number(f.backward_ms.value), number(f.optimizer_ms.value),
      f.load_ms.value > 0 ? fmt::format(", batch and loop {} ms", number(f.load_ms.value)) : "");
  text += continued(bound_words(t));
  text += continued(fmt::format(
      "the CPU needs {} ms to hand it to the GPU (forward {}, backward {}, optimizer {}, loop "
      "{}){}",
      number(f.host_ms.value),
      number(milliseconds(t.phase_host[static_cast<std::size_t>(StepPhase::kForward)] +
                          t.phase_host[static_cast<std::size_t>(StepPhase::kLoss)])),
      host(StepPhase::kBackward), host(StepPhase::kOptimizer), host(StepPhase::kLoad),
      t.host_bound()
          ? fmt::format("; the GPU waits {} ms for it", number(milliseconds(t.exposed_host)))
          : ""));
  if (f.job.gpus > 1) {
    text += fmt::format(
        "          {} {} ms; the step waits {} ms for it and for the slowest rank\n",
        f.job.parallel == Parallel::kDdp ? "all-reduce" : "communication",
        number(milliseconds(t.communication)), number(milliseconds(t.exposed_communication)));
  }
  for (const PassTime& pass : f.passes)
    text +=
        fmt::format("          {}: {} ms a batch\n", pass.name, number(milliseconds(pass.total)));
  text += fmt::format("GPU       busy {} (what nvidia-smi shows), MFU {} ({})\n",
                      percent(f.gpu_busy.value), percent(f.mfu.value), mfu_words(f, context));
  return text + (f.energy ? energy_line(*f.energy, f.job.gpus) : std::string());
}

/// Why a run takes what it takes.
std::string run_block(const RunTime& run) {
  if (run.epochs == 0) return {};
  std::string parts;
  for (const RunPart& part : run.start_up) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name,
                         human_time(kSecond * part.seconds.value));
  }
  std::string text = fmt::format(
      "Run       first epoch {}, each further {}{}\n",
      human_time(kSecond * run.seconds_first_epoch.value),
      human_time(kSecond * run.seconds_epoch.value),
      run.seconds_validation.value > 0
          ? fmt::format(" (validation {})", human_time(kSecond * run.seconds_validation.value))
          : "");
  return text + continued("once: " + parts);
}

std::string memory_block(const Forecast& f) {
  const MemoryForecast& m = f.memory;
  return fmt::format("Memory    device {}; reserved {}; allocated {}\n", gib(m.device_peak),
                     gib(m.reserved_peak), gib(m.allocated_peak)) +
         continued(fmt::format("at the peak ({}): {}", m.peak_words, live_words(m))) +
         continued(fmt::format("outside the allocator: {}; fragmentation {}", outside_words(m),
                               human_bytes(m.outcome.fragmentation)));
}

std::string input_block(const Forecast& f, bool cpu) {
  if (!f.input.known) return "Input     not known (--data DIR); taken as fast enough\n";
  const LoaderForecast& l = f.input.loader;
  std::string text = fmt::format(
      "Input     {}{}, prefetch {}: up to {} samples/s; workers busy {}, {} waits {} a "
      "step\n",
      counted(f.loader.workers, "worker"), cpu ? "" : " per GPU", f.loader.prefetch,
      rate(f.input.samples_per_s), percent(l.worker_utilization), cpu ? "training" : "GPU",
      human_time(l.wait));
  return text + fmt::format(
                    "          first batch after {}; /dev/shm {}, pinned {}, workers {}, {} file "
                    "descriptors\n",
                    human_time(l.first_batch), human_bytes(l.shared_memory),
                    human_bytes(l.pinned_memory), human_bytes(l.worker_memory), l.file_descriptors);
}

}  // namespace

std::string forecast_text(const Prediction& prediction, const ReportContext& context) {
  const Forecast& f = prediction.forecast;
  std::string text = context.model_line + "\n" + settings_line(context.settings) + "\n";
  if (prediction.two_point) text += two_point_text(*prediction.two_point) + "\n";
  text += not_trained(f.diagnostics) + verdict(prediction, context.cpu);
  // What does not run has no speed.
  if (f.memory.fits)
    text += speed(f, context) + "\n" + (context.cpu ? cpu_time_block(f) : time_block(f, context)) +
            run_block(f.run);
  text += context.cpu ? cpu_memory_block(f) : memory_block(f);
  if (f.memory.fits) text += input_block(f, context.cpu);
  text += "\n";
  text += footer(context.rests_on, context.assumed, context.excluded);
  return text + diagnostics(f.diagnostics, kNotTrained) + diagnostics(context.data);
}

}  // namespace stoker
