#include "study/findings/selection.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/ranges.h"
#include "base/text.h"
#include "base/units.h"
#include "study/definition/expression.h"
#include "study/definition/trials.h"
#include "study/definition/values.h"
#include "study/store/controller_lock.h"

namespace stoker::study {
namespace {

constexpr const char* kFacts[] = {"state", "cause", "trial", "repeat", "seed", "host"};

std::string fact_of(const TrialRow& row, std::string_view name) {
  if (name == "state") return std::string(name_of(row.state));
  if (name == "cause") return row.cause;
  if (name == "trial") return std::to_string(row.id);
  if (name == "repeat") return std::to_string(row.trial.repetition);
  if (name == "seed") return std::to_string(row.trial.seed);
  return row.host;
}

std::vector<std::string> known_names(const StudyView& view) {
  std::set<std::string> names(view.axes.begin(), view.axes.end());
  names.insert(std::begin(kFacts), std::end(kFacts));
  names.insert("wall_s");
  for (const TrialRow& row : view.rows) {
    for (const auto* figures : {&row.metrics, &row.resources}) {
      for (const auto& [name, value] : *figures) names.insert(name);
    }
  }
  for (const Metric& metric : view.study.metrics) names.insert(metric.name);
  return {names.begin(), names.end()};
}

Status check_known(const std::vector<std::string>& names, const StudyView& view,
                   const std::string& where) {
  const auto known = known_names(view);
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return fail(ErrorCode::kNotFound, "no trial has \"" + name + "\"" + suggestion(name, known),
                where);
  }
  return {};
}

Status keep_only(StudyView& view, const std::string& where) {
  if (where.empty()) return {};
  const auto expression = Expression::parse(where);
  if (!expression) return fail(ErrorCode::kUsage, expression.error().message, "--where");
  TRY(check_known(expression->names(), view, "--where"));
  std::vector<TrialRow> kept;
  for (TrialRow& row : view.rows) {
    std::map<std::string, std::string, std::less<>> values;
    for (std::size_t i = 0; i < view.axes.size(); ++i) values[view.axes[i]] = row.trial.values[i];
    for (const char* fact : kFacts) values.emplace(fact, fact_of(row, fact));
    bool complete = true;
    for (const std::string& name : expression->names()) {
      if (values.contains(name)) continue;
      if (const auto figure = figure_of(row, name)) values[name] = shortest(*figure);
      else complete = false;  // a trial that has no such figure is not among those asked for
    }
    if (!complete) continue;
    const auto holds = expression->holds([&](std::string_view name) -> const std::string* {
      const auto found = values.find(name);
      return found == values.end() ? nullptr : &found->second;
    });
    if (!holds) return fail(ErrorCode::kUsage, holds.error().message, "--where");
    if (*holds) kept.push_back(std::move(row));
  }
  view.rows = std::move(kept);
  return {};
}

/// What trials cost, where a GPU-hour has a price: a figure like any other.
void add_cost(StudyView& view) {
  double price = view.study.budget.price_of_gpu_hour;
  if (const auto found = view.study.forecast.find("price");
      price == 0 && found != view.study.forecast.end())
    price = as_number(found->second).value_or(0);
  if (price <= 0) return;
  for (TrialRow& row : view.rows) {
    const auto command = command_of(view.study, row.trial, row.id, "");
    if (!row.wall_s || !command || command->needs.gpus == 0) continue;
    row.resources["cost"] = *row.wall_s / kSecondsAnHour * command->needs.gpus * price;
  }
}

void leave_out_retried(std::vector<TrialRow>& rows) {
  std::set<std::int64_t> replaced;
  for (const TrialRow& row : rows) {
    if (row.retry_of && is_final(row.state)) replaced.insert(*row.retry_of);
  }
  std::erase_if(rows, [&](const TrialRow& row) { return replaced.contains(row.id); });
}

std::vector<std::string> metrics_of(const StudyView& view) {
  std::vector<std::string> names;
  for (const Metric& metric : view.study.metrics) names.push_back(metric.name);
  std::set<std::string> others;
  for (const TrialRow& row : view.rows) {
    for (const auto& [name, value] : row.metrics) others.insert(name);
  }
  for (const std::string& name : others) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

Group::Mean mean_of(const std::vector<double>& values) {
  Group::Mean m;
  m.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return m;
  for (const double value : values) m.mean += value;
  m.mean /= static_cast<double>(values.size());
  if (values.size() < 2) return m;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  m.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return m;
}

}  // namespace

std::optional<double> figure_of(const TrialRow& row, const std::string& name) {
  if (const auto found = row.metrics.find(name); found != row.metrics.end()) return found->second;
  if (const auto found = row.resources.find(name); found != row.resources.end())
    return found->second;
  if (name == "wall_s") return row.wall_s;
  return std::nullopt;
}

Result<StudyView> select(const Store& store, const Selection& selection) {
  StudyView view;
  view.study = store.study();
  view.axes = axis_names(view.study);
  view.rows = TRY(store.full_trials());
  for (TrialRow& row : view.rows) row.trial.values.resize(view.axes.size());
  view.counts = TRY(store.counts());
  view.running_by = ControllerLock::holder(store.path());
  leave_out_retried(view.rows);
  add_cost(view);
  TRY(check_known(selection.metrics, view, "--metric"));
  view.metrics = selection.metrics.empty() ? metrics_of(view) : selection.metrics;
  TRY(keep_only(view, selection.where));
  return view;
}

Result<std::vector<Group>> grouped(const StudyView& view, const std::vector<std::string>& by) {
  std::vector<std::size_t> columns;
  for (const std::string& name : by) {
    const auto found = std::ranges::find(view.axes, name);
    if (found == view.axes.end())
      return fail(ErrorCode::kNotFound,
                  "\"" + name + "\" is no axis of this study" + suggestion(name, view.axes),
                  "--by");
    columns.push_back(static_cast<std::size_t>(found - view.axes.begin()));
  }
  std::vector<Group> groups;
  std::map<std::vector<std::string>, std::size_t> places;
  std::vector<std::vector<std::vector<double>>> values;  // by group, metric
  for (const TrialRow& row : view.rows) {
    std::vector<std::string> key;
    for (const std::size_t column : columns) key.push_back(row.trial.values[column]);
    const auto [place, is_new] = places.emplace(key, groups.size());
    if (is_new) {
      groups.push_back({key});
      values.emplace_back(view.metrics.size());
    }
    Group& group = groups[place->second];
    ++group.trials;
    if (row.state != TrialState::kDone) continue;
    ++group.done;
    for (std::size_t m = 0; m < view.metrics.size(); ++m) {
      if (const auto value = figure_of(row, view.metrics[m]))
        values[place->second][m].push_back(*value);
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& metric : values[g]) groups[g].means.push_back(mean_of(metric));
  }
  return groups;
}

}  // namespace stoker::study
