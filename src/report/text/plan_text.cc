#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lower/loop/untrained.h"
#include "report/model/input_plan_report.h"
#include "report/model/report.h"
#include "report/text/cpu_text.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kMostAdvice = 4;

std::string gpus_text(int gpus) { return gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus); }

/// What is set on a CPU: "batch 8, fp32, 2 threads, 1 worker (prefetch 2)".
std::string cpu_settings(const Forecast& f) {
  std::string text = fmt::format("batch {}, {}, {}", f.job.batch, name_of(f.job.precision),
                                 threads_text(f.job.threads));
  if (!f.input.known) return text;
  return text +
         fmt::format(", {} worker{}{}", f.loader.workers, f.loader.workers == 1 ? "" : "s",
                     f.loader.workers > 0 ? fmt::format(" (prefetch {})", f.loader.prefetch) : "");
}

std::string loader_text(const Forecast& f) {
  if (!f.input.known) return f.loader.pin ? "pinned" : "pageable";
  return fmt::format("{} worker{} per GPU{}, {}", f.loader.workers,
                     f.loader.workers == 1 ? "" : "s",
                     f.loader.workers > 0 ? fmt::format(" (prefetch {})", f.loader.prefetch) : "",
                     f.loader.pin ? "pinned" : "pageable");
}

std::string headline(const Plan& plan, const ReportContext& context) {
  const Forecast& f = plan.best.forecast;
  std::string text;
  if (context.cpu) {
    text = fmt::format("BEST: {}\n", cpu_settings(f));
  } else {
    text = fmt::format("BEST: {}, batch {} per GPU", gpus_text(f.job.gpus), f.job.batch);
    if (f.job.gpus > 1 || f.job.accumulate > 1) {
      text += fmt::format(" ({} global)", f.job.batch * f.job.gpus * f.job.accumulate);
    }
    text += fmt::format(", {}, {}\n", name_of(f.job.precision), loader_text(f));
  }
  text += fmt::format("  {} {}/s", rate(f.samples_per_s), context.sample_word);
  if (context.dataset_samples > 0) {
    text += fmt::format("; {} {}: {} an epoch", with_commas(context.dataset_samples),
                        context.sample_word == "img" ? "images" : context.sample_word + "s",
                        human_time(kSecond * f.epoch_s.value));
    if (f.epoch_cost.value > 0)
      text += fmt::format(", {}{:.2f}", context.currency, f.epoch_cost.value);
    if (f.energy && f.energy->epoch_kwh.value > 0) {
      text += ", about " + energy(f.energy->epoch_kwh);
    }
    if (f.run.epochs > 0) {
      text += fmt::format("\n  run of {}: {}", with_commas(f.run.epochs),
                          human_time(kSecond * f.run.seconds_total.value));
      if (f.run_cost.value > 0)
        text += fmt::format(", {}{:.2f}", context.currency, f.run_cost.value);
    }
  }
  text += fmt::format("\n  step {}", millis(f.step_ms));
  if (f.input.known) {
    text += fmt::format("{}, waits {} for input; first batch after {}",
                        context.cpu ? "" : " on the GPU", human_time(f.input.loader.wait),
                        human_time(f.input.loader.first_batch));
  }
  text += fmt::format("\n  Limited by {}", f.limiter.what);
  if (f.next_limiter.what != f.limiter.what) {
    text += fmt::format("; next: {} at {} {}/s", f.next_limiter.what,
                        number(f.next_limiter.samples_per_s), context.sample_word);
  }
  return text + "\n";
}

/// One row: what the GPUs' table says of each number of them.
std::string cpu_line(const Forecast& f) {
  const LoaderForecast& l = f.input.loader;
  const Bytes loader = l.shared_memory + l.worker_memory;
  std::string text = fmt::format("Memory: {} resident of {}", gib(f.memory.device_peak),
                                 human_bytes(f.memory.usable));
  if (loader.count() > 0) text += fmt::format(", and {} for the loader", human_bytes(loader));
  return text + "\n";
}

std::string gpu_table(const Plan& plan, const ReportContext& context) {
  if (context.cpu) return cpu_line(plan.best.forecast);
  std::vector<std::vector<std::string>> rows{{"GPUs", "batch", "workers",
                                              context.sample_word + "/s [90 %]", "epoch",
                                              "GPU busy", "memory/GPU", "host memory", "limit"}};
  for (const PlanRow& row : plan.by_gpus) {
    const Forecast& f = row.forecast;
    const LoaderForecast& l = f.input.loader;
    const Bytes host = l.shared_memory + l.pinned_memory + l.worker_memory;
    rows.push_back(
        {std::to_string(f.job.gpus), std::to_string(f.job.batch),
         !f.input.known   ? "-"
         : f.job.gpus > 1 ? fmt::format("{}x{}", f.job.gpus, f.loader.workers)
                          : std::to_string(f.loader.workers),
         rate(f.samples_per_s), f.epoch_s.value > 0 ? human_time(kSecond * f.epoch_s.value) : "-",
         percent(f.gpu_busy.value),
         fmt::format("{:.1f}/{:.1f} G",
                     f.memory.device_peak.value / static_cast<double>(kGiB.count()),
                     gibibytes(f.memory.usable)),
         host.count() > 0 ? human_bytes(host) : "-", std::string(limit_word(f.limiter))});
  }
  return table(rows, {8}) + left_out_counts(plan.uneven_counts, plan.best.forecast.job.nodes);
}

/// A model of convolutions is as fast in tf32 as in fp32, which runs them in TF32 by PyTorch's
/// default.
bool says_nothing_new(const Plan& plan, const Forecast& other) {
  constexpr double kSame = 0.005;
  if (other.job.precision != Precision::kTf32) return false;
  const auto same_as = [&](const Forecast& f) {
    return f.job.precision == Precision::kFp32 &&
           std::fabs(f.samples_per_s.value / other.samples_per_s.value - 1) < kSame;
  };
  return same_as(plan.best.forecast) ||
         std::any_of(plan.by_precision.begin(), plan.by_precision.end(),
                     [&](const PlanRow& row) { return same_as(row.forecast); });
}

std::string safe_batch_text(const BatchReason& why) {
  if (why.largest_safe <= 0)
    return fmt::format("no batch is safe, up to {} may run", why.largest_running);
  std::string text = fmt::format("the largest safe batch is {}", why.largest_safe);
  if (why.largest_running > why.largest_safe)
    text += fmt::format(" (up to {} may run)", why.largest_running);
  return text;
}

std::string why_batch(const Plan& plan, const ReportContext& context) {
  const BatchReason& why = plan.batch_reason;
  const Forecast& f = plan.best.forecast;
  const std::string safe = safe_batch_text(why);
  if (why.fixed) return fmt::format("Batch {} was given; {}.\n", f.job.batch, safe);
  std::string text = fmt::format("Why {}: ", f.job.batch);
  if (why.largest_safe <= 0) {
    text += safe + ".";
  } else if (f.limiter.kind == Limiter::kInput && f.job.batch < why.largest_safe && !why.ceiling) {
    text += fmt::format("the input is the limit, a larger batch brings nothing; {}.", safe);
  } else if (f.job.batch == why.largest_safe) {
    text += "it is the largest safe batch";
    if (why.largest_running > why.largest_safe)
      text += fmt::format(" (up to {} may run)", why.largest_running);
    text += ".";
  } else if (f.job.batch == why.best_batch) {
    text += fmt::format("no other batch is faster; {}.", safe);
  } else if (why.ceiling) {
    text += fmt::format("the ceiling on the global batch allows no more; {}.", safe);
  } else {
    text +=
        fmt::format("{} of the speed of {}; {}.", percent(why.share_of_best), why.best_batch, safe);
  }
  text += "\n";
  for (const PlanRow& other : plan.by_precision) {
    const Forecast& o = other.forecast;
    if (says_nothing_new(plan, o)) continue;
    text +=
        fmt::format("{} instead: {} {}/s{}, batch up to {}.\n", name_of(o.job.precision),
                    number(o.samples_per_s.value), context.sample_word,
                    context.cpu ? "" : " with " + gpus_text(o.job.gpus), other.batch_limits.low);
  }
  if (!context.cpu && f.input.known && std::fabs(plan.pin_gain) > 0.005) {
    text +=
        f.loader.pin
            ? fmt::format("Pinned memory with non_blocking copies: {:+.0f} % against pageable.\n",
                          100 * plan.pin_gain)
            : fmt::format(
                  "Pageable memory: the pin-memory thread would take a core from the workers "
                  "({:+.0f} %).\n",
                  100 * plan.pin_gain);
  }
  return text;
}

std::string next_steps(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < std::min(plan.next.size(), kMostAdvice); ++i) {
    text += fmt::format("{} {}. {}\n", i == 0 ? "Next " : "     ", i + 1, plan.next[i].what);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string plan_text(const Plan& plan, const ReportContext& context) {
  std::string text = context.model_line + "\n" + settings_line(context.settings) + "\n" +
                     not_trained(plan.best.forecast.diagnostics) + headline(plan, context) + "\n" +
                     gpu_table(plan, context) + "\n" + why_batch(plan, context) + "\n" +
                     next_steps(plan);
  if (plan.input) text += input_remarks_text(*plan.input, context);
  text += labelled("Rests on", context.rests_on);
  text += labelled("Assumed", context.assumed);
  text += labelled("Excluded", context.excluded);
  return text + diagnostics(plan.best.forecast.diagnostics, kNotTrained) +
         diagnostics(context.data);
}

}  // namespace stoker
