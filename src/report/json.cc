#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/layout.h"
#include "report/report.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

/// Of docs/json.md; a reader may rely on everything that page names.
constexpr const char* kSchema = "stoker-report-1";

Json figure(const Figure& f) {
  return {{"value", f.value}, {"low", f.low}, {"high", f.high}, {"basis", f.basis}};
}

/// A worker's private memory depends on what the user's data set holds.
constexpr Band kWorkerMemoryBand{0.5, 1.0};

Json certain(double value, const std::string& basis) {
  return figure({value, value, value, basis});
}

Json settings(const Forecast& f) {
  const Job& j = f.job;
  Json dimensions = Json::object();
  for (const auto& [name, value] : j.dimensions) dimensions[name] = value;
  return {{"batch", j.batch},
          {"gpus", j.gpus},
          {"nodes", j.nodes},
          {"accumulate", j.accumulate},
          {"global_batch", j.batch * j.gpus * j.accumulate},
          {"precision", name_of(j.precision)},
          {"optimizer", name_of(j.optimizer.kind)},
          {"optimizer_loop", name_of(j.optimizer.loop)},
          {"channels_last", j.channels_last},
          {"dimensions", dimensions},
          {"workers", f.loader.workers},
          {"prefetch", f.loader.prefetch},
          {"pin", f.loader.pin},
          {"persistent", f.loader.persistent}};
}

Json memory(const Forecast& f, const std::optional<BatchLimits>& limits) {
  const MemoryForecast& m = f.memory;
  Json json{{"fits", m.fits},
            {"only_by_flushing", m.only_by_flushing},
            {"usable_bytes", m.usable.count()},
            {"device_peak_bytes", figure(m.device_peak)},
            {"reserved_peak_bytes", figure(m.reserved_peak)},
            {"allocated_peak_bytes", figure(m.allocated_peak)},
            {"fragmentation_bytes", m.outcome.fragmentation.count()}};
  if (!m.out_of_memory.empty()) json["out_of_memory"] = m.out_of_memory;
  Json parts = Json::object();
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    parts[std::string(name_of(static_cast<BufferRole>(r)))] = m.outcome.live.by_role[r].count();
  }
  json["at_peak_bytes"] = std::move(parts);
  Json outside = Json::array();
  for (const OutsideMemory& o : m.outside)
    outside.push_back({{"name", o.name}, {"bytes", o.bytes.count()}, {"basis", o.basis}});
  json["outside_allocator"] = std::move(outside);
  if (limits) {
    const auto b = [](std::int64_t n) { return static_cast<double>(n); };
    json["max_batch"] = figure({b(limits->value), b(limits->low), b(limits->high), limits->basis});
    if (limits->first_failing > 0) json["first_failing_batch"] = limits->first_failing;
    if (limits->missing.count() > 0) json["missing_bytes"] = limits->missing.count();
  }
  return json;
}

Json time(const Forecast& f) {
  const StepTime& t = f.time;
  const auto ms = [&](Nanos n) { return figure(with_band(milliseconds(n), t.band, t.basis)); };
  return {{"step_ms", figure(f.step_ms)},
          {"forward_ms", figure(f.forward_ms)},
          {"backward_ms", figure(f.backward_ms)},
          {"optimizer_ms", figure(f.optimizer_ms)},
          {"host_ms", figure(f.host_ms)},
          {"exposed_host_ms", ms(t.exposed_host)},
          {"copy_ms", ms(t.copy)},
          {"exposed_copy_ms", ms(t.exposed_copy)},
          {"communication_ms", ms(t.communication)},
          {"exposed_communication_ms", ms(t.exposed_communication)}};
}

Json input(const Forecast& f) {
  if (!f.input.known) return {{"known", false}};
  const LoaderForecast& l = f.input.loader;
  const auto scaled = [&](double value) {
    const Figure& rate = f.input.samples_per_s;
    return figure(
        {value, value * rate.low / rate.value, value * rate.high / rate.value, rate.basis});
  };
  return {{"known", true},
          {"ceiling_samples_per_s", figure(f.input.samples_per_s)},
          {"wait_ms", scaled(milliseconds(l.wait))},
          {"first_batch_ms", scaled(milliseconds(l.first_batch))},
          {"epoch_start_ms", scaled(milliseconds(l.epoch_start))},
          {"worker_utilization", scaled(l.worker_utilization)},
          {"cores_used", scaled(l.cores_used)},
          {"cached_share", certain(l.cached_share, l.basis)},
          {"shared_memory_bytes",
           certain(static_cast<double>(l.shared_memory.count()), "exact by the loader's rules")},
          {"pinned_memory_bytes",
           certain(static_cast<double>(l.pinned_memory.count()), "exact by the loader's rules")},
          {"worker_memory_bytes",
           figure(with_band(static_cast<double>(l.worker_memory.count()), kWorkerMemoryBand,
                            "estimate from one measured worker"))},
          {"file_descriptors", l.file_descriptors},
          {"limit", input_limit_text(l.limit)}};
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

Json forecast_object(const Forecast& f, const std::optional<BatchLimits>& limits) {
  Json json{{"gpu", f.gpu_name},
            {"settings", settings(f)},
            {"memory", memory(f, limits)},
            {"time", time(f)},
            {"input", input(f)},
            {"throughput_samples_per_s", figure(f.samples_per_s)},
            {"gpu_utilization", figure(f.gpu_busy)},
            {"mfu", figure(f.mfu)},
            {"limiter", limiter(f.limiter, f)},
            {"next_limiter", limiter(f.next_limiter, f)}};
  if (f.epoch_s.value > 0) {
    json["epoch_s"] = figure(f.epoch_s);
    json["gpu_hours_per_epoch"] = figure(f.gpu_hours_per_epoch);
  }
  if (f.epoch_cost.value > 0) json["epoch_cost"] = figure(f.epoch_cost);
  json["diagnostics"] = diagnostics(f.diagnostics);
  return json;
}

Json envelope(const ReportContext& context) {
  return {{"schema", kSchema},
          {"stoker", context.tool_version},
          {"model", context.model},
          {"step_hash", context.step_hash},
          {"host", {{"name", context.host_name}, {"cores", context.host_cores}}},
          {"dataset_samples", context.dataset_samples},
          {"rests_on", context.rests_on},
          {"assumed", context.assumed},
          {"excluded", context.excluded},
          {"data_diagnostics", diagnostics(context.data)}};
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
  return {{"by_gpus", rows(plan.by_gpus)},
          {"by_precision", rows(plan.by_precision)},
          {"batch_reason",
           {{"largest_safe", why.largest_safe},
            {"first_failing", why.first_failing},
            {"share_of_best", why.share_of_best},
            {"best_batch", why.best_batch},
            {"ceiling", why.ceiling},
            {"fixed", why.fixed}}},
          {"pin_gain", plan.pin_gain},
          {"next", std::move(next)},
          {"settings_considered", plan.settings_considered}};
}

Json explanation(const Forecast& f, const Step& step) {
  Json classes = Json::object();
  for (std::size_t c = 0; c < kKernelClasses; ++c) {
    const double ms = milliseconds(f.time.class_device[c]);
    if (ms > 0) classes[std::string(name_of(static_cast<KernelClass>(c)))] = ms;
  }
  Json modules = Json::object();
  for (const auto& [module, time_spent] : f.module_time)
    modules[step.module_names[index(module)]]["ms"] = milliseconds(time_spent);
  for (const ModuleBytes& m : f.memory.outcome.live.by_module) {
    modules[step.module_names[index(m.module)]]["bytes_at_peak"] = m.bytes.count();
  }
  return {{"class_ms", std::move(classes)}, {"modules", std::move(modules)}};
}

void merge_into(Json& target, const Json& source) {
  for (const auto& [key, value] : source.items()) target[key] = value;
}

}  // namespace

std::string forecast_json(const Forecast& f, const std::optional<BatchLimits>& limits,
                          const ReportContext& context, bool explain) {
  Json json = envelope(context);
  merge_into(json, forecast_object(f, limits));
  if (explain && context.step != nullptr) json["explain"] = explanation(f, *context.step);
  return json.dump(2) + "\n";
}

std::string plan_json(const Plan& plan, const ReportContext& context) {
  Json json = envelope(context);
  merge_into(json, forecast_object(plan.best.forecast, plan.best.batch_limits));
  json["plan"] = plan_object(plan);
  return json.dump(2) + "\n";
}

std::string comparison_json(const std::vector<std::pair<std::string, Plan>>& plans,
                            Objective objective, const ReportContext& context) {
  Json json = envelope(context);
  json["objective"] = name_of(objective);
  Json list = Json::array();
  for (const auto& [name, plan] : plans) {
    Json one = forecast_object(plan.best.forecast, plan.best.batch_limits);
    one["plan"] = plan_object(plan);
    list.push_back(std::move(one));
  }
  json["gpus"] = std::move(list);
  return json.dump(2) + "\n";
}

}  // namespace stoker
