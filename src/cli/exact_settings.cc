#include "cli/exact_settings.h"

#include <algorithm>
#include <charconv>

#include "forecast/settings.h"
#include "plan/search.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kLargest = "max";

/// When not even the smallest batch fits, that one is left: the answer is then a no, and names what
/// is missing.
Status set_largest_batch(Resolved& r) {
  Scenario& s = r.base;
  set_batch(s, std::max<std::int64_t>(1, s.step->dimensions[0].minimum));
  const auto limits = TRY(batch_limits_of(r));
  const std::int64_t safe = limits.low > 0 ? limits.low : limits.value;
  if (safe > 0) set_batch(s, safe);
  return {};
}

}  // namespace

Status parse_batch(const std::string& text, RunOptions& o) {
  if (text.empty()) return {};
  if (text == kLargest) {
    o.largest_batch = true;
    return {};
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(ErrorCode::kUsage,
                "\"" + text + "\" is no batch; write a number of samples per GPU, or max for the " +
                    "largest that is safe",
                "--batch");
  }
  o.batch = value;
  return {};
}

Result<int> gpus_of(const RunOptions& o) {
  const auto counts = TRY(parse_counts(o.gpus.empty() ? "1" : o.gpus));
  if (counts.size() != 1)
    return fail(ErrorCode::kUsage,
                "takes one number of GPUs here; a range goes with one --gpu and a MODEL, or with "
                "`stoker plan`",
                "--gpus");
  return counts.front();
}

Result<BatchLimits> batch_limits_of(const Resolved& r) {
  const Scenario& s = r.base;
  return forecast_batch_limits(*s.step, s.job, s.machine, s.allocator, r.knowledge, s.last_batch);
}

Result<Resolved> resolve_exactly(const RunOptions& o, const std::string& gpu,
                                 std::size_t position) {
  std::vector<Precision> precisions{Precision::kFp32};
  if (!o.precision.empty()) {
    const auto precision = TRY(parse_precision(o.precision));
    precisions = {precision};
  }
  const auto gpus = TRY(gpus_of(o));
  auto resolved = resolve(o, gpu, precisions, position);
  if (!resolved) return resolved;
  Scenario& s = resolved->base;
  const auto& variant = resolved->model.variants.front();
  if (!o.precision.empty() && variant.precision != precisions.front()) {
    return fail(ErrorCode::kBadInput,
                o.model + " was captured in " + variant.step->precision + "; it cannot serve " +
                    o.precision,
                "--precision");
  }
  s.job.gpus = gpus;
  s.machine.gpu_count = std::max(1, s.job.gpus / s.job.nodes);
  TRY(check_gpus_of(s));
  set_precision(s, *variant.step, variant.precision);
  s.loader.workers = static_cast<int>(o.workers.value_or(
      std::max(1, static_cast<int>(s.machine.host.cores) / s.machine.gpu_count)));
  s.loader.prefetch = static_cast<int>(o.prefetch.value_or(2));
  s.loader.persistent = true;
  set_pinning(s, !o.no_pin && !s.machine.gpu.is_cpu());
  if (o.largest_batch) {
    TRY(set_largest_batch(*resolved));
  } else {
    set_batch(s, o.batch.value_or(s.step->dimensions[0].default_value));
  }
  TRY(check_last_batch(s, s.job.batch));
  ReportContext& context = resolved->context;
  const std::int64_t per_step = s.job.batch * s.job.gpus * s.job.accumulate;
  if (s.dataset_samples > 0 && s.dataset_samples < per_step) {
    context.data.add("epoch_below_step", Severity::kWarning,
                     "an epoch of " + std::to_string(s.dataset_samples) +
                         " samples is less than one step of " + std::to_string(per_step) +
                         " (batch x GPUs x accumulate): its time is that of a fraction of a step; "
                         "take fewer GPUs or a smaller batch");
  }
  if (!o.batch && !o.largest_batch)
    context.assumed.push_back("batch " + std::to_string(s.job.batch) + " (--batch)");
  if (!o.workers && s.sample.known)
    context.assumed.push_back(std::to_string(s.loader.workers) + " workers (--workers)");
  return resolved;
}

}  // namespace stoker::cli
