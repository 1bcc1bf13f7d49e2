#include <cmath>
#include <set>

#include "base/ranges.h"
#include "json/value.h"
#include "report/json/answer.h"
#include "report/study/figures.h"
#include "report/study/findings_data.h"
#include "report/study/study_report.h"
#include "study/definition/values.h"

namespace stoker {
namespace {

using json::Value;
using study::StudyView;
using study::TrialRow;

/// Numbers of an axis as numbers, all else as texts.
Value axis_value(const std::string& text) {
  const auto number = study::as_number(text);
  if (!number) return text;
  constexpr double kExact = 0x1p53;
  if (text.find_first_of(".eE") == std::string::npos && std::fabs(*number) <= kExact &&
      *number == std::trunc(*number))
    return static_cast<std::int64_t>(*number);
  return *number;
}

Value counts_json(const StudyView& view) {
  Value counts = Value::object();
  for (const auto& [state, count] : view.counts) counts.append(std::string(name_of(state)), count);
  return counts;
}

Value trial_json(const StudyView& view, const TrialRow& row) {
  Value values = Value::object();
  for (std::size_t i = 0; i < view.axes.size(); ++i)
    values.append(view.axes[i], axis_value(row.trial.values[i]));
  return {{"trial", row.id},
          {"values", std::move(values)},
          {"repeat", row.trial.repetition},
          {"seed", row.trial.seed},
          {"state", name_of(row.state)},
          {"cause", row.cause},
          {"reason", row.reason},
          {"exit_code", json::or_null(row.exit_code)},
          {"signal", json::or_null(row.signal)},
          {"retry_of", json::or_null(row.retry_of)},
          {"submitted", json::or_null(row.submitted)},
          {"started", json::or_null(row.started)},
          {"ended", json::or_null(row.ended)},
          {"wall_s", json::or_null(row.wall_s)},
          {"host", row.host},
          {"job", row.job},
          {"metrics", row.metrics},
          {"resources", row.resources},
          {"forecast", row.forecast},
          {"corrected", row.corrected},
          {"tail", row.tail}};
}

Value head(const StudyView& view, std::string_view version) {
  Value root = answer("stoker-study-1", version);
  root["name"] = view.study.name;
  root["running_by"] = view.running_by;
  root["counts"] = counts_json(view);
  root["axes"] = view.axes;
  return root;
}

std::string cell(const std::string& text) { return csv_cell(text); }

std::string cell(const std::optional<double>& value) { return value ? shortest(*value) : ""; }
std::string cell(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "";
}

}  // namespace

Value study_object(const StudyView& view, std::string_view version, const study::Findings* findings,
                   const std::vector<study::Convergence>& convergences) {
  Value root = head(view, version);
  Value trials = Value::array();
  for (const TrialRow& row : view.rows) trials.push_back(trial_json(view, row));
  root["trials"] = std::move(trials);
  if (findings != nullptr) {
    Value found = findings_object(view, *findings), curves = Value::array();
    for (const auto& one : convergences) curves.push_back(convergence_object(view, one));
    found["convergence"] = std::move(curves);
    root["findings"] = std::move(found);
  }
  return root;
}

std::string study_json(const StudyView& view, std::string_view version,
                       const study::Findings* findings,
                       const std::vector<study::Convergence>& convergences) {
  return answer_text(study_object(view, version, findings, convergences));
}

std::string planned_json(const StudyView& view, const std::vector<std::string>& commands,
                         std::string_view version) {
  Value root = study_object(view, version, nullptr, {});
  for (std::size_t i = 0; i < commands.size(); ++i) root["trials"][i]["command"] = commands[i];
  return answer_text(root);
}

std::string groups_json(const StudyView& view, const std::vector<std::string>& by,
                        const std::vector<study::Group>& groups, std::string_view version) {
  Value root = head(view, version);
  root["by"] = by;
  Value list = Value::array();
  for (const study::Group& group : groups) {
    Value values = Value::object(), means = Value::object();
    for (std::size_t i = 0; i < by.size(); ++i) values.append(by[i], axis_value(group.values[i]));
    for (std::size_t m = 0; m < group.means.size(); ++m) {
      const auto& mean = group.means[m];
      means.append(view.metrics[m], {{"count", mean.count},
                                     {"mean", mean.count > 0 ? Value(mean.mean) : Value()},
                                     {"deviation", json::or_null(mean.deviation)}});
    }
    list.push_back({{"values", std::move(values)},
                    {"trials", group.trials},
                    {"done", group.done},
                    {"metrics", std::move(means)}});
  }
  root["groups"] = std::move(list);
  return answer_text(root);
}

std::string study_csv(const StudyView& view) {
  std::set<std::string> resources, forecasts, corrections;
  for (const TrialRow& row : view.rows) {
    for (const auto& [name, value] : row.resources) resources.insert(name);
    for (const auto& [name, value] : row.forecast) forecasts.insert(name);
    for (const auto& [name, value] : row.corrected) corrections.insert(name);
  }
  std::string text = "trial";
  for (const std::string& axis : view.axes) text += "," + cell(axis);
  text += ",repeat,seed,state,cause,exit_code,signal,retry_of,started,ended,wall_s,host";
  for (const std::string& metric : view.metrics) text += "," + cell(metric);
  for (const std::string& resource : resources) text += "," + cell(resource);
  for (const std::string& name : forecasts) text += ",forecast_" + cell(name);
  for (const std::string& name : corrections) text += ",corrected_" + cell(name);
  text += ",reason\n";
  for (const TrialRow& row : view.rows) {
    text += std::to_string(row.id);
    for (const std::string& value : row.trial.values) text += "," + cell(value);
    text += "," + std::to_string(row.trial.repetition) + "," + std::to_string(row.trial.seed) +
            "," + std::string(name_of(row.state)) + "," + row.cause + "," + cell(row.exit_code) +
            "," + cell(row.signal) + "," + cell(row.retry_of) + "," + cell(row.started) + "," +
            cell(row.ended) + "," + cell(row.wall_s) + "," + cell(row.host);
    for (const std::string& metric : view.metrics)
      text += "," + cell(study::figure_of(row, metric));
    for (const std::string& resource : resources)
      text += "," + cell(study::figure_of(row, resource));
    for (const auto& [names, figures] :
         {std::pair{&forecasts, &row.forecast}, {&corrections, &row.corrected}}) {
      for (const std::string& name : *names) {
        const auto found = figures->find(name);
        text += "," + (found == figures->end() ? "" : shortest(found->second));
      }
    }
    text += "," + cell(row.reason) + "\n";
  }
  return text;
}

}  // namespace stoker
