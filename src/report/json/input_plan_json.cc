
#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/input_plan_report.h"

namespace stoker {
namespace {

Json settings_object(const LoaderSettings& s) {
  return {{"workers", s.workers},
          {"prefetch", s.prefetch},
          {"batch", s.batch},
          {"pin", s.pin},
          {"persistent", s.persistent},
          {"in_order", s.in_order},
          {"start_method", start_method_name(s.start_method)}};
}

/// The forecast of one process; its sizes of memory are those of all processes.
Json forecast_part(const LoaderForecast& f) {
  return {{"samples_per_s", f.samples_per_s},
          {"interval_ms", milliseconds(f.interval)},
          {"wait_ms", milliseconds(f.wait)},
          {"first_batch_ms", milliseconds(f.first_batch)},
          {"epoch_start_ms", milliseconds(f.epoch_start)},
          {"epoch_ms", milliseconds(f.epoch)},
          {"worker_utilization", f.worker_utilization},
          {"cores_used", f.cores_used},
          {"disk_utilization", f.disk_utilization},
          {"cached_share", f.cached_share},
          {"shared_memory_bytes", f.shared_memory.count()},
          {"pinned_memory_bytes", f.pinned_memory.count()},
          {"worker_memory_bytes", f.worker_memory.count()},
          {"file_descriptors", f.file_descriptors},
          {"limit", name_of(f.limit)}};
}

Json knob_object(const Knob& k) {
  return {{"name", k.name},
          {"kind", name_of(k.kind)},
          {"change", k.change},
          {"gain", {{"value", k.gain}, {"low", k.gain_low}, {"high", k.gain_high}}},
          {"samples_per_s", k.samples_per_s},
          {"epoch_seconds_saved", k.epoch_seconds},
          {"epoch_money_saved", k.epoch_money},
          {"host_memory_bytes", k.memory.count()},
          {"risk", k.risk}};
}

Json findings_list(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& f : findings) {
    list.push_back({{"name", f.name},
                    {"severity", f.severity == Severity::kWarning ? "warning" : "note"},
                    {"evidence", f.evidence},
                    {"cure", f.cure}});
  }
  return list;
}

Json thesis_object(const InputPlan& p) {
  if (!p.thesis) return {{"answer", nullptr}, {"why", p.thesis_has_none}};
  const ThesisAnswer& a = p.thesis->answer;
  return {{"answer",
           {{"batch", a.batch},
            {"workers", a.workers},
            {"memory_bytes", a.memory.count()},
            {"load_ms", milliseconds(a.load)},
            {"step_ms", milliseconds(a.step)},
            {"limit", a.limit}}},
          {"settings", settings_object(p.thesis->settings)},
          {"forecast", forecast_part(p.thesis->forecast)}};
}

}  // namespace

Json input_plan_object(const InputPlan& p) {
  Json json{{"settings", settings_object(p.best)},
            {"step_ms", milliseconds(p.step)},
            {"gpus", p.gpus},
            {"processes_on_host", p.ranks},
            {"throughput_samples_per_s", figure_object(p.samples_per_s)},
            {"ceiling_samples_per_s", figure_object(p.ceiling)},
            {"gpu_waits", p.gpu_waits},
            {"stop", p.stop},
            {"forecast", forecast_part(p.forecast)},
            {"now",
             {{"known", p.now_known},
              {"settings", settings_object(p.now)},
              {"forecast", forecast_part(p.now_forecast)}}}};
  if (p.epoch_s.value > 0) json["epoch_s"] = figure_object(p.epoch_s);
  if (p.first_epoch_s.value > 0) json["first_epoch_s"] = figure_object(p.first_epoch_s);
  if (p.epoch_cost.value > 0) json["epoch_cost"] = figure_object(p.epoch_cost);
  if (!p.shortage.empty()) json["host_shortage"] = p.shortage;
  Json knobs = Json::array();
  for (const Knob& k : p.knobs) knobs.push_back(knob_object(k));
  json["knobs"] = std::move(knobs);
  json["traps"] = p.traps;
  json["findings"] = findings_list(p.findings);
  json["findings_now"] = findings_list(p.findings_now);
  if (p.thesis || !p.thesis_has_none.empty()) json["thesis"] = thesis_object(p);
  json["settings_considered"] = p.settings_considered;
  return json;
}

std::string input_plan_json(const InputPlan& plan, const ReportContext& context) {
  Json json = envelope(context);
  json["input_plan"] = input_plan_object(plan);
  return answer_text(json);
}

}  // namespace stoker
