#include "report/html/study_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "report/study/figures.h"
#include "study/definition/values.h"

namespace stoker::page {
namespace {

/// So that a page stays small: cells of the table, points of all curves, curves.
constexpr std::size_t kMostCells = 2000, kMostCurves = 200;
constexpr std::size_t kLongestReason = 100;

std::size_t columns_of(const study::StudyView& view) {
  return view.axes.size() + view.metrics.size() + 5;
}

std::size_t shown_trials(const study::StudyView& view) {
  return std::min(view.rows.size(), kMostCells / columns_of(view));
}

Verdict end_of(const study::TrialRow& row) {
  using study::TrialState;
  if (row.state == TrialState::kDone) return row.cause.empty() ? Verdict::kGood : Verdict::kRisky;
  return study::is_final(row.state) ? Verdict::kBad : Verdict::kNone;
}

}  // namespace

Shown trial_figure(const std::string& name, double value) {
  return plain(named_figure(name, value), value);
}

Cell figure_cell(const std::string& name, const std::optional<double>& value) {
  return value ? Cell{"", trial_figure(name, *value)} : Cell{"-", {}};
}

Cell axis_cell(const std::string& value) {
  const auto number = study::as_number(value);
  return number ? Cell{"", plain(value, *number)} : Cell{value, {}};
}

std::string setting_words(const std::vector<std::string>& axes,
                          const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(axes.size(), values.size()); ++i)
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", axes[i], values[i]);
  return text;
}

Json trials_table(const study::StudyView& view) {
  std::vector<Column> columns{{"trial"}};
  for (std::size_t i = 0; i < view.axes.size(); ++i) {
    const bool numeric = std::all_of(view.rows.begin(), view.rows.end(), [&](const auto& row) {
      return study::as_number(row.trial.values[i]).has_value();
    });
    columns.push_back({view.axes[i], numeric});
  }
  columns.push_back({"state", false});
  for (const std::string& metric : view.metrics) columns.push_back({metric});
  columns.insert(columns.end(), {{"host memory"}, {"time"}, {"why", false}});
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < shown_trials(view); ++i) {
    const study::TrialRow& row = view.rows[i];
    std::vector<Cell> cells{{"", plain(std::to_string(row.id), static_cast<double>(row.id))}};
    for (std::size_t a = 0; a < view.axes.size(); ++a)
      cells.push_back(axis_cell(row.trial.values[a]));
    std::string state(name_of(row.state));
    std::ranges::replace(state, '_', ' ');
    cells.push_back({state, {}});
    for (const std::string& metric : view.metrics)
      cells.push_back(figure_cell(metric, study::figure_of(row, metric)));
    cells.push_back(figure_cell("peak_bytes", study::figure_of(row, "peak_bytes")));
    cells.push_back(figure_cell("wall_s", row.wall_s));
    cells.push_back({printable(row.reason, kLongestReason), {}});
    rows.push_back(std::move(cells));
  }
  if (rows.empty()) return {};
  return table(columns, rows);
}

std::string trials_words(const study::StudyView& view) {
  const std::size_t shown = shown_trials(view);
  if (shown == view.rows.size()) return "";
  return fmt::format("The first {} of {} trials; `stoker study --csv` has all.",
                     with_commas(static_cast<std::int64_t>(shown)),
                     with_commas(static_cast<std::int64_t>(view.rows.size())));
}

std::vector<Line> curve_lines(const study::StudyView& view, const study::Curves& curves,
                              CurveAxis axis, std::size_t points_of_all) {
  const std::size_t most = std::max<std::size_t>(
      12, points_of_all / std::max<std::size_t>(1, std::min(kMostCurves, curves.size())));
  std::vector<Line> out;
  for (const study::TrialRow& row : view.rows) {
    const auto found = curves.find(row.id);
    if (found == curves.end() || found->second.empty() || out.size() >= kMostCurves) continue;
    const auto& points = found->second;
    Line line;
    line.label = fmt::format("trial {}: {}", row.id, setting_words(view.axes, row.trial.values));
    const std::size_t stride = (points.size() + most - 1) / most;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i % stride != 0 && i + 1 != points.size()) continue;
      const study::MetricPoint& p = points[i];
      line.x.push_back(axis == CurveAxis::kSeconds ? p.seconds
                                                   : p.step.value_or(static_cast<double>(i + 1)));
      line.y.push_back(p.value);
    }
    std::string state(name_of(row.state));
    std::ranges::replace(state, '_', ' ');
    line.note = state + (row.reason.empty() ? "" : ": " + printable(row.reason, kLongestReason));
    line.end = end_of(row);
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace stoker::page
