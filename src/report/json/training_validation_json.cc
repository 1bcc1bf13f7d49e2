
#include "json/value.h"
#include "report/json/json_parts.h"
#include "report/model/training_report.h"

namespace stoker {
namespace {

constexpr int kTrainingMajor = 1, kTrainingMinor = 0;

const char* status_name(RunStatus status) {
  switch (status) {
    case RunStatus::kOk:
      return "ok";
    case RunStatus::kOutOfMemory:
      return "oom";
    case RunStatus::kFailed:
      return "failed";
  }
  return "";
}

Json json_of(const ComparedFigure& f) {
  return {{"name", f.name},     {"unit", f.unit},
          {"fact", f.fact},     {"forecast", figure_object(f.forecast)},
          {"error", f.error()}, {"within_band", f.within()},
          {"judged", f.judged}};
}

Json json_of(const ComparedRun& run) {
  Json figures = Json::array();
  for (const ComparedFigure& f : run.figures) figures.push_back(json_of(f));
  Json json{
      {"model", run.run.model},
      {"name", run.run.name},
      {"batch", run.run.batch},
      {"threads", run.run.threads},
      {"precision", run.run.precision},
      {"optimizer", run.run.optimizer},
      {"status", status_name(run.run.status)},
      {"note", run.run.note},
      {"good_repetitions", run.fact ? run.fact->good : 0},
      {"settled", run.fact && run.fact->settled},
      {"spread", run.fact ? Json(run.fact->spread) : Json(nullptr)},
      {"disturbed_by", run.fact ? run.fact->disturbed_by : ""},
      {"counts", run.counts()},
      {"not_forecast", run.not_forecast},
      {"forecast_fits", run.forecast ? Json(run.forecast->forecast.memory.fits) : Json(nullptr)},
      {"figures", std::move(figures)}};
  return json;
}

Json json_of(const HeldOutErrors& errors) {
  return {{"median", errors.median}, {"worst", errors.worst}};
}

Json json_of(const Learning& l, const std::string& into) {
  Json figures = Json::array();
  for (const MeasuredFigure& f : l.figures)
    figures.push_back(
        {{"name", f.name}, {"threads", f.threads}, {"value", f.value}, {"spread", f.spread}});
  return {{"helps", l.helps},
          {"why_not", l.why_not},
          {"held_out", l.held_out},
          {"held_out_by", l.by_model ? "model" : "run"},
          {"step_error_before", json_of(l.before)},
          {"step_error_after", json_of(l.after)},
          {"figures", std::move(figures)},
          {"file", into}};
}

}  // namespace

std::string training_validation_json(const TrainingValidation& v, const TrainingSaid& said) {
  Json root = answer("stoker-validate-1", said.version);
  root["schema_version"] = {kTrainingMajor, kTrainingMinor};
  root["held"] = v.judged == 0 && v.failures.empty() ? Json() : Json(v.failures.empty());
  root["failures"] = v.failures;
  root["device"] = said.device;
  root["machine"] = said.machine;
  root["calibrated"] = said.calibrated;
  root["complete"] = said.complete;
  root["not_judged"] = v.not_judged;
  root["summaries"] = Json::object();
  for (const FigureSummary& s : v.summaries) {
    root["summaries"][s.name] = {{"runs", s.count},        {"median", s.median},
                                 {"worst", s.worst},       {"bias", s.bias},
                                 {"coverage", s.coverage}, {"worst_at", s.worst_label}};
  }
  root["runs"] = Json::array();
  for (const ComparedRun& run : v.runs) root["runs"].push_back(json_of(run));
  root["classes"] = Json::array();
  for (const ClassError& c : v.classes) {
    root["classes"].push_back({{"name", c.name},
                               {"share", c.share},
                               {"factor", c.factor},
                               {"deviation", c.deviation},
                               {"carried", c.carried}});
  }
  root["rankings"] = Json::array();
  for (const BatchRanking& r : v.rankings) {
    root["rankings"].push_back({{"label", r.label},
                                {"pairs", r.pairs},
                                {"right", r.right},
                                {"measured_best", r.measured_best},
                                {"forecast_best", r.forecast_best},
                                {"lost", r.lost}});
  }
  root["learning"] = said.learning ? json_of(*said.learning, said.learned_into) : Json(nullptr);
  root["rule"] = said.rule;
  root["measured_with"] = said.measured_with;
  return answer_text(root);
}

std::string accuracy_json(const std::vector<AccuracyEntry>& entries,
                          const std::filesystem::path& log, const std::string& version) {
  Json root = answer("stoker-accuracy-log-1", version);
  root["schema_version"] = {kTrainingMajor, kTrainingMinor};
  root["log"] = log.string();
  root["entries"] = Json::array();
  for (const AccuracyEntry& e : entries) {
    root["entries"].push_back(
        {{"date", e.date},           {"model", e.model},        {"machine", e.machine},
         {"device", e.device},       {"stoker", e.stoker},      {"torch", e.torch},
         {"driver", e.driver},       {"batch", e.batch},        {"threads", e.threads},
         {"precision", e.precision}, {"figure", e.figure},      {"unit", e.unit},
         {"fact", e.fact},           {"forecast", e.forecast},  {"low", e.low},
         {"high", e.high},           {"error", e.error()},      {"within_band", e.within()},
         {"basis", e.basis},         {"disturbed", e.disturbed}});
  }
  return answer_text(root);
}

}  // namespace stoker
