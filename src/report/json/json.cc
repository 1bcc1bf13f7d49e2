#include <fmt/core.h>

#include "forecast/input_figures.h"
#include "report/json/json_parts.h"
#include "report/model/report.h"
#include "step/trained_share.h"

namespace stoker {
namespace {

/// A reader may rely on every key that docs/reference/json.md names for this schema.
constexpr const char* kSchema = "stoker-report-1";

/// From which memory the batch comes is said of the loader.
std::string_view copy_name(const Job& job) {
  if (job.prefetching_loader) return name_of(CopyWay::kOverlapped);
  return name_of(is_pinned(job.copy) ? job.copy : CopyWay::kBlocking);
}

Json settings_object(const Forecast& f) {
  const Job& j = f.job;
  Json dimensions = Json::object();
  for (const auto& [name, value] : j.dimensions) dimensions[name] = value;
  Json settings{{"batch", j.batch},
                {"gpus", j.gpus},
                {"nodes", j.nodes},
                {"accumulate", j.accumulate},
                {"global_batch", j.batch * j.gpus * j.accumulate},
                {"threads", j.threads},
                {"precision", name_of(j.precision)},
                {"optimizer", name_of(j.optimizer)},
                {"optimizer_loop", name_of(j.optimizer.loop)},
                {"parallel", j.gpus > 1 ? name_of(j.parallel) : ""},
                {"fsdp_mixed_precision", name_of(j.fsdp_precision)},
                {"fsdp_group", j.fsdp_group},
                {"loss", name_of(j.loss)},
                {"checkpoint", j.checkpoint},
                {"clip", j.clip},
                {"clip_checks", j.clip_checks},
                {"cuda_graphs", j.cuda_graphs},
                {"compile", j.compile},
                {"fsdp_cpu_offload", j.fsdp_offload},
                {"copy", copy_name(j)},
                {"ema", j.ema},
                {"grad_scaler", j.grad_scaler},
                {"validation_batch", j.validation_batch.value_or(0)},
                {"validation_with_grad", j.validation_batch && !j.validation_no_grad},
                {"last_batch", j.last_batch},
                {"zero_grad_before_forward", j.zero_grad_before_forward},
                {"zero_grad_fills", j.zero_grad_fills},
                {"bucket_view", j.gradient_as_bucket_view},
                {"prefetching_loader", j.prefetching_loader},
                {"channels_last", j.channels_last},
                {"dimensions", dimensions},
                {"workers", f.loader.workers},
                {"prefetch", f.loader.prefetch},
                {"pin", f.loader.pin},
                {"persistent", f.loader.persistent}};
  if (j.zero_grad_before_backward) settings["zero_grad_before_backward"] = true;
  return settings;
}

Json input(const Forecast& f) {
  if (!f.input.known) return {{"known", false}};
  const InputFigures figures = input_figures(f.input);
  return {{"known", true},
          {"ceiling_samples_per_s", figure_object(f.input.samples_per_s)},
          {"wait_ms", figure_object(figures.wait_ms)},
          {"first_batch_ms", figure_object(figures.first_batch_ms)},
          {"epoch_start_ms", figure_object(figures.epoch_start_ms)},
          {"worker_utilization", figure_object(figures.worker_utilization)},
          {"cores_used", figure_object(figures.cores_used)},
          {"cached_share", figure_object(figures.cached_share)},
          {"shared_memory_bytes", figure_object(figures.shared_memory)},
          {"pinned_memory_bytes", figure_object(figures.pinned_memory)},
          {"worker_memory_bytes", figure_object(figures.worker_memory)},
          {"file_descriptors", f.input.loader.file_descriptors},
          {"limit", name_of(f.input.loader.limit)}};
}

const char* limiter_name(Limiter limiter) {
  switch (limiter) {
    case Limiter::kGpuCompute:
      return "gpu_compute";
    case Limiter::kGpuLaunch:
      return "kernel_launch";
    case Limiter::kCommunication:
      return "communication";
    case Limiter::kInput:
      return "input";
    case Limiter::kCopy:
      return "host_to_device_copy";
    case Limiter::kHostOptimizer:
      return "host_optimizer";
  }
  return "";
}

Json limiter(const LimiterFact& fact, const Forecast& f) {
  return {{"value", limiter_name(fact.kind)},
          {"what", fact.what},
          {"samples_per_s", fact.samples_per_s},
          {"basis", f.samples_per_s.basis}};
}

Json diagnostics(const Diagnostics& all) {
  Json list = Json::array();
  for (const Diagnostic& d : all.all()) {
    list.push_back({{"name", d.name},
                    {"severity", d.severity == Severity::kWarning ? "warning" : "note"},
                    {"count", d.count},
                    {"advice", d.advice}});
  }
  return list;
}

Json energy_object(const EnergyForecast& e) {
  Json json{{"watts", figure_object(e.watts)},
            {"joules_per_sample", figure_object(e.joules_per_sample)}};
  if (e.epoch_kwh.value > 0) json["epoch_kwh"] = figure_object(e.epoch_kwh);
  if (e.run_kwh.value > 0) json["run_kwh"] = figure_object(e.run_kwh);
  return json;
}

void merge_into(Json& target, const Json& source) {
  for (const auto& [key, value] : source.items()) target[key] = value;
}

}  // namespace

Json forecast_object(const Forecast& f, const std::optional<BatchLimits>& limits) {
  Json json{{"gpu", f.gpu_name},
            {"settings", settings_object(f)},
            {"memory", memory_object(f, limits)},
            {"time", time_object(f)},
            {"input", input(f)},
            {"throughput_samples_per_s", figure_object(f.samples_per_s)},
            {"gpu_utilization", figure_object(f.gpu_busy)},
            {"mfu", figure_object(f.mfu)},
            {"limiter", limiter(f.limiter, f)},
            {"next_limiter", limiter(f.next_limiter, f)}};
  if (f.epoch_s.value > 0) {
    json["epoch_s"] = figure_object(f.epoch_s);
    json["gpu_hours_per_epoch"] = figure_object(f.gpu_hours_per_epoch);
  }
  if (f.price_per_gpu_hour > 0) json["price_per_gpu_hour"] = f.price_per_gpu_hour;
  if (f.run.epochs > 0) json["run"] = run_object(f.run);
  if (f.epoch_cost.value > 0) json["epoch_cost"] = figure_object(f.epoch_cost);
  if (f.run_cost.value > 0) json["run_cost"] = figure_object(f.run_cost);
  if (f.energy) json["energy"] = energy_object(*f.energy);
  json["diagnostics"] = diagnostics(f.diagnostics);
  return json;
}

/// The software that an answer rests on; cuDNN's version decides kernels and is not captured.
Json capture_object(const Provenance& p) {
  Json libraries = Json::object();
  for (const auto& [library, version] : p.libraries) libraries[library] = version;
  Json json{{"spec", p.spec},     {"torch", p.torch}, {"python", p.python},
            {"stoker", p.stoker}, {"date", p.date},   {"libraries", std::move(libraries)}};
  if (p.captured_at > 0) json["captured_at"] = p.captured_at;
  return json;
}

Json envelope(const ReportContext& context) {
  Json json = answer(kSchema, context.tool_version);
  merge_into(json, {{"model", context.model},
                    {"step_hash", context.step_hash},
                    {"host", {{"name", context.host_name}, {"cores", context.host_cores}}},
                    {"dataset_samples", context.dataset_samples},
                    {"rests_on", context.rests_on},
                    {"assumed", context.assumed},
                    {"excluded", context.excluded},
                    {"data_diagnostics", diagnostics(context.data)}});
  if (context.step != nullptr) {
    json["capture"] = capture_object(context.step->provenance);
    const TrainedShare weights = trained_share(*context.step);
    json["parameters"] = {{"total", static_cast<std::int64_t>(weights.total)},
                          {"trained", static_cast<std::int64_t>(weights.trained)}};
  }
  return json;
}

Json plan_object(const Plan& plan) {
  const auto rows = [](const std::vector<PlanRow>& from) {
    Json list = Json::array();
    for (const PlanRow& row : from) list.push_back(forecast_object(row.forecast, row.batch_limits));
    return list;
  };
  Json next = Json::array();
  for (const Advice& a : plan.next)
    next.push_back({{"what", a.what}, {"speed_gain", a.gain}, {"price_change", a.price}});
  const BatchReason& why = plan.batch_reason;
  Json json{{"by_gpus", rows(plan.by_gpus)},
            {"by_precision", rows(plan.by_precision)},
            {"batch_reason",
             {{"largest_safe", why.largest_safe},
              {"first_failing", why.first_failing},
              {"share_of_best", why.share_of_best},
              {"best_batch", why.best_batch},
              {"ceiling", why.ceiling},
              {"data_samples", why.data_samples},
              {"too_large_for_workers", why.too_large_for_workers},
              {"fixed", why.fixed}}},
            {"pin_gain", plan.pin_gain},
            {"next", std::move(next)},
            {"settings_considered", plan.settings_considered}};
  if (!plan.uneven_counts.empty()) json["uneven_counts"] = plan.uneven_counts;
  if (plan.input) json["input"] = input_plan_object(*plan.input);
  return json;
}

std::string forecast_json(const Prediction& prediction, const ReportContext& context,
                          bool explain) {
  Json json = envelope(context);
  merge_into(json, forecast_object(prediction.forecast, prediction.limits));
  if (prediction.advice && !prediction.forecast.memory.fits)
    json["memory"]["remedies"] = remedies_object(prediction.advice->remedies);
  if (prediction.two_point) json["two_point"] = two_point_object(*prediction.two_point);
  if (explain && context.step != nullptr)
    json["explain"] = explanation_object(prediction, *context.step);
  return answer_text(json);
}

std::string two_point_json(const TwoPointAnswer& answer, const ReportContext& context) {
  Json json = envelope(context);
  json["two_point"] = two_point_object(answer);
  return answer_text(json);
}

std::string plan_json(const Plan& plan, const ReportContext& context) {
  Json json = envelope(context);
  merge_into(json, forecast_object(plan.best.forecast, plan.best.batch_limits));
  json["plan"] = plan_object(plan);
  return answer_text(json);
}

}  // namespace stoker
