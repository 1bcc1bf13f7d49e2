#include "report/text/plan_words.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/text.h"
#include "report/text/cpu_text.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

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

/// A validation pass that leaves less room than training needs is no reason for a small batch.
std::string validation_text(const BatchReason& why, const Forecast& f) {
  if (why.low_in_training <= 0 || !f.job.validation_batch) return {};
  return fmt::format(
      "The validation in batches of {} decides what is safe: in training alone up to {} would be. "
      "Its batch is a setting of its own: give a smaller one (--validation).\n",
      *f.job.validation_batch, why.low_in_training);
}

/// A data set of few samples ends the search of batches: that is no reason for a batch.
std::string small_data_text(const BatchReason& why, const Forecast& f) {
  if (why.data_samples <= 0) return {};
  const std::int64_t a_step = f.job.batch * f.job.gpus * f.job.accumulate;
  const std::int64_t steps = std::max<std::int64_t>(1, why.data_samples / a_step);
  constexpr std::int64_t kFewSteps = 10;  // judgement: beyond, other things decided
  if (steps > kFewSteps) return {};
  return fmt::format(
      "The data set has only {}: this batch leaves {} an epoch, and no batch was tried "
      "that takes more. Where it stands for a larger data set, give that one's size (--samples).\n",
      counted(why.data_samples, "sample"),
      steps == 1 ? "one step" : fmt::format("{} steps", with_commas(steps)));
}

}  // namespace

std::string gpus_text(int gpus) { return gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus); }

std::string best_settings(const Forecast& f, const ReportContext& context) {
  if (context.cpu) return cpu_settings(f);
  std::string text = fmt::format("{}, batch {} per GPU", gpus_text(f.job.gpus), f.job.batch);
  if (f.job.gpus > 1 || f.job.accumulate > 1)
    text += fmt::format(" ({} global)", f.job.batch * f.job.gpus * f.job.accumulate);
  return text + fmt::format(", {}, {}", name_of(f.job.precision), loader_text(f));
}

std::string mfu_words(const Forecast& f, const ReportContext& context) {
  const auto& stated = context.stated_rates;
  const bool of_file = std::find(stated.begin(), stated.end(), f.time.main_unit) != stated.end();
  return std::string("achieved over ") + (of_file ? "the machine file's" : "data-sheet") +
         " FLOP/s";
}

std::string limit_words(const Forecast& f, const ReportContext& context) {
  std::string text = "Limited by " + f.limiter.what;
  if (f.next_limiter.what == f.limiter.what) return text;
  return text + fmt::format("; next: {} at {} {}/s", f.next_limiter.what,
                            number(f.next_limiter.samples_per_s), context.sample_word);
}

std::string why_batch(const Plan& plan, const ReportContext& context) {
  const BatchReason& why = plan.batch_reason;
  const Forecast& f = plan.best.forecast;
  const std::string safe = safe_batch_text(why);
  if (why.fixed) return fmt::format("Batch {} was given; {}.\n", f.job.batch, safe);
  std::string text = fmt::format("Why {}: ", f.job.batch);
  if (why.largest_safe <= 0) {
    text += safe + ".";
  } else if (why.too_large_for_workers > 0) {
    text += fmt::format("batches of {} leave no room in the host's memory for as many workers; {}.",
                        why.too_large_for_workers, safe);
  } else if (f.limiter.kind == Limiter::kInput && f.job.batch < why.largest_safe && !why.ceiling) {
    text += fmt::format("the input is the limit, a larger batch brings nothing; {}.", safe);
  } else if (f.job.batch == why.largest_safe) {
    text += "it is the largest safe batch";
    if (why.largest_running > why.largest_safe)
      text += fmt::format(" (up to {} may run)", why.largest_running);
    text += ".";
  } else if (f.job.batch == why.best_batch) {
    text += fmt::format("no other batch{} is faster; {}.",
                        why.ceiling ? " within the ceiling on the global batch" : "", safe);
  } else if (why.ceiling) {
    text += fmt::format("the ceiling on the global batch allows no more; {}.", safe);
  } else {
    text +=
        fmt::format("{} of the speed of {}; {}.", percent(why.share_of_best), why.best_batch, safe);
  }
  text += "\n" + validation_text(why, f) + small_data_text(why, f);
  for (const PlanRow& other : plan.by_precision) {
    const Forecast& o = other.forecast;
    if (says_nothing_new(plan, o)) continue;
    text +=
        fmt::format("{} instead: {} {}/s{}, batch up to {}.\n", name_of(o.job.precision),
                    number(o.samples_per_s.value), context.sample_word,
                    context.cpu ? "" : " with " + gpus_text(o.job.gpus), other.batch_limits.low);
  }
  if (!context.cpu && f.input.known && std::fabs(plan.pin_gain) > kPinningTells) {
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

}  // namespace stoker
