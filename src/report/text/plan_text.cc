#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "lower/loop/untrained.h"
#include "report/model/input_plan_report.h"
#include "report/model/report.h"
#include "report/text/cpu_text.h"
#include "report/text/layout.h"
#include "report/text/plan_words.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kMostAdvice = 4;

/// ", or openwebtext-tokens by name": well-known data sets of the kind that the model takes, where
/// that is known.
std::string likely_data(const ReportContext& context) {
  std::string_view names;
  if (context.sample_word == "img") names = "imagenet, coco, cifar10";
  if (context.sample_word == "seq") names = "openwebtext-tokens";
  if (context.sample_word == "recording") names = "librispeech";
  return names.empty() ? std::string() : fmt::format(", or {} by name", names);
}

std::string headline(const Plan& plan, const ReportContext& context) {
  const Forecast& f = plan.best.forecast;
  std::string text = "BEST: " + best_settings(f, context) + "\n";
  text += fmt::format("  {} {}/s", rate(f.samples_per_s), context.sample_word);
  if (context.dataset_samples > 0) {
    text += fmt::format("; {} {}: {} an epoch", with_commas(context.dataset_samples),
                        context.sample_word == "img" ? "images" : context.sample_word + "s",
                        human_time(kSecond * f.epoch_s.value));
    if (f.epoch_cost.value > 0) text += ", " + money(f.epoch_cost.value, context.currency);
    if (f.energy && f.energy->epoch_kwh.value > 0) {
      text += ", about " + energy(f.energy->epoch_kwh);
    }
    if (f.run.epochs > 0) {
      text += fmt::format("\n  run of {}: {}", with_commas(f.run.epochs),
                          human_time(kSecond * f.run.seconds_total.value));
      if (f.run_cost.value > 0) text += ", " + money(f.run_cost.value, context.currency);
    }
  }
  text += fmt::format("\n  step {}", millis(f.step_ms));
  if (f.input.known) {
    text += fmt::format("{}, waits {} for input; first batch after {}",
                        context.cpu ? "" : " on the GPU", human_time(f.input.loader.wait),
                        human_time(f.input.loader.first_batch));
  } else {
    text += "; input not checked: --data DIR" + likely_data(context);
  }
  return text + "\n  " + limit_words(f, context) + "\n";
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
         : f.job.gpus > 1 ? fmt::format("{}/GPU", f.loader.workers)
                          : std::to_string(f.loader.workers),
         rate(f.samples_per_s), f.epoch_s.value > 0 ? human_time(kSecond * f.epoch_s.value) : "-",
         percent(f.gpu_busy.value),
         fmt::format("{:.1f}/{:.1f} G",
                     f.memory.device_peak.value / static_cast<double>(kGiB.count()),
                     gibibytes(f.memory.usable)),
         host.count() > 0 ? human_bytes(host) : "-", std::string(limit_word(f.limiter))});
  }
  // What the host holds and how busy things are is given up before batch, speed and limit.
  return table(rows, {8}, "  ", {7, 5, 2, 4, 6}) +
         left_out_counts(plan.uneven_counts, plan.best.forecast.job.nodes);
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
  text += footer(context.rests_on, context.assumed, context.excluded);
  return text + diagnostics(plan.best.forecast.diagnostics, kNotTrained) +
         diagnostics(context.data);
}

}  // namespace stoker
