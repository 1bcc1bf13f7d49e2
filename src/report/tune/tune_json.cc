#include "report/json/answer.h"
#include "report/model/tune_report.h"

namespace stoker {
namespace {

using json::Value;

Value choice_json(const TuneReport& report) {
  if (!report.choice) return {};
  Value values = Value::object();
  for (std::size_t i = 0; i < report.choice->values.size(); ++i)
    values.append(report.axes[i], report.choice->values[i]);
  const auto& score = report.choice->score;
  const bool as_told = report.objective.most && !report.objective.by_cost();
  Value batch;
  if (report.batch)
    batch = {{"per_device", report.batch->per_device},
             {"devices", report.batch->devices},
             {"global", report.batch->global()}};
  return {{"values", std::move(values)},
          {"score", score ? Value(as_told ? *score : -*score) : Value()},
          {"trial", report.choice->trial > 0 ? Value(report.choice->trial) : Value()},
          {"command", report.command},
          {"batch", std::move(batch)}};
}

}  // namespace

std::string tune_json(const TuneReport& report, std::string_view version) {
  Value root = answer("stoker-tune-1", version);
  root["method"] = report.method;
  root["metric"] = report.objective.metric;
  root["direction"] = report.objective.most ? "max" : "min";
  const auto& [metric, most, target, weight] = report.objective;
  root["objective"] = weight ? "energy" : "metric";
  root["target"] = target ? Value(most ? *target : -*target) : Value();
  root["energy_weight"] = json::or_null(weight);
  root["store"] = report.store;
  root["choice"] = choice_json(report);
  Value decisions = Value::array();
  for (const tune::Decision& d : report.decisions)
    decisions.push_back({{"what", d.what}, {"why", d.why}, {"saved_s", d.saved_s}});
  root["decisions"] = std::move(decisions);
  root["spent"] = {{"trials", report.spent.trials},       {"restarted", report.spent.restarted},
                   {"seconds", report.spent.seconds},     {"steps", report.spent.steps},
                   {"gpu_hours", report.spent.gpu_hours}, {"saved_s", report.spent.saved_s}};
  root["problem"] = report.problem;
  root["stopped"] = report.over;
  return answer_text(root);
}

}  // namespace stoker
