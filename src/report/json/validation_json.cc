#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/input_validation_report.h"

namespace stoker {
namespace {

constexpr int kInputMajor = 1, kInputMinor = 0;

Json json_of(const ErrorSummary& s) {
  return {{"points", s.count},
          {"mean", s.mean},
          {"worst", s.worst},
          {"bias", s.bias},
          {"worst_at", s.worst_label}};
}

Json json_of(const ComparedPoint& p) {
  const LoaderSettings& s = p.point.settings;
  return {{"scenario", p.scenario},
          {"label", p.point.label()},
          {"batch", s.batch},
          {"workers", s.workers},
          {"prefetch", s.prefetch},
          {"in_order", s.in_order},
          {"persistent", s.persistent},
          {"start_method", start_method_name(s.start_method)},
          {"step_ms", milliseconds(p.point.step)},
          {"cores", p.point.cores},
          {"cold", p.point.cold},
          {"samples", s.dataset_samples},
          {"good_repetitions", p.good},
          {"epoch_ms", milliseconds(p.epoch)},
          {"forecast_epoch_ms", milliseconds(p.forecast_epoch())},
          {"epoch_error", p.epoch_error},
          {"band", {-p.band.below, p.band.above}},
          {"within_band", p.within_band},
          {"first_batch_ms", milliseconds(p.first_batch)},
          {"forecast_first_batch_ms", milliseconds(p.forecast_first_batch())},
          {"first_batch_error", p.first_batch_error},
          {"interval_ms", milliseconds(p.interval)},
          {"forecast_interval_ms", milliseconds(p.forecast.interval)},
          {"shm_bytes", p.shared_memory.count()},
          {"forecast_shm_bytes", p.forecast.shared_memory_used.count()},
          {"shm_at_most_bytes", p.forecast.shared_memory.count()},
          {"shm_error", p.shared_memory_error ? Json(*p.shared_memory_error) : Json(nullptr)},
          {"window_fills", p.window_fills},
          {"limit", name_of(p.forecast.limit)}};
}

}  // namespace

std::string validation_json(const InputValidation& v, const LoaderRuns& runs,
                            const std::string& tool_version, const InputBars& bars) {
  Json root = answer("stoker-validate-input-1", tool_version);
  root["schema_version"] = {kInputMajor, kInputMinor};
  root["reached"] = v.failures.empty();
  root["failures"] = v.failures;
  root["bars"] = {{"epoch_mean", bars.epoch_mean},
                  {"epoch_worst", bars.epoch_worst},
                  {"first_batch_mean", bars.first_batch_mean},
                  {"shm_worst", bars.shared_memory_worst},
                  {"recommendation", bars.recommendation},
                  {"band_coverage", bars.band_coverage}};
  root["epoch"] = json_of(v.epoch);
  root["first_batch"] = json_of(v.first_batch);
  root["shm"] = json_of(v.shared_memory);
  root["shm_elsewhere"] = json_of(v.shared_memory_elsewhere);
  root["coverage"] = v.coverage;
  root["by_scenario"] = Json::object();
  for (const auto& [name, summary] : v.by_scenario) root["by_scenario"][name] = json_of(summary);
  root["recommendations"] = Json::array();
  for (const RecommendationCheck& c : v.recommendations) {
    root["recommendations"].push_back({{"scenario", c.scenario},
                                       {"settings", c.settings},
                                       {"chosen", c.chosen},
                                       {"best", c.best},
                                       {"loss", c.loss}});
  }
  root["points"] = Json::array();
  for (const ComparedPoint& p : v.points) root["points"].push_back(json_of(p));
  root["dropped"] = Json::array();
  for (const DroppedPoint& d : v.dropped)
    root["dropped"].push_back({{"label", d.label}, {"why", d.why}});
  root["skipped"] = Json::array();
  for (const LoaderRuns::Skipped& s : runs.skipped)
    root["skipped"].push_back({{"name", s.name}, {"why", s.why}});
  root["rule"] = runs.rule;
  root["measured"] = {{"date", runs.date},
                      {"cpu_model", runs.cpu_model},
                      {"cores", runs.cores},
                      {"python", runs.python},
                      {"torch", runs.torch}};
  return answer_text(root);
}

}  // namespace stoker
