#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/counted.h"
#include "base/text.h"
#include "report/study/figures.h"
#include "report/study/study_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using study::StudyView;
using study::TrialRow;
using study::TrialState;

constexpr std::size_t kMostTrialRows = 60, kMostReasons = 10, kLongestReason = 160;

bool repeated(const StudyView& view) { return view.study.repeat > 1; }

/// What was forecast of any trial, of what is shown beside it.
std::vector<std::string> forecast_names(const StudyView& view) {
  std::vector<std::string> names;
  for (const char* name : {"samples_per_s", "wall_s"}) {
    const bool any = std::ranges::any_of(
        view.rows, [&](const TrialRow& row) { return row.forecast.contains(name); });
    if (any) names.emplace_back(name);
  }
  return names;
}

std::string banded(const TrialRow& row, const std::string& name) {
  const auto end = [&](const char* suffix) -> std::optional<double> {
    const auto found = row.forecast.find(name + suffix);
    return found == row.forecast.end() ? std::nullopt : std::optional(found->second);
  };
  return named_figure(name, end("")) + " [" + named_figure(name, end("_low")) + "-" +
         named_figure(name, end("_high")) + "]";
}

std::vector<std::string> heading(const StudyView& view) {
  std::vector<std::string> cells{"trial"};
  for (const std::string& axis : view.axes) cells.push_back(printable(axis));
  if (repeated(view)) cells.emplace_back("seed");
  cells.emplace_back("state");
  for (const std::string& metric : view.metrics) cells.push_back(printable(metric));
  for (const std::string& name : forecast_names(view))
    cells.push_back("forecast " + printable(name));
  cells.insert(cells.end(), {"cores", "memory", "time"});
  return cells;
}

std::vector<std::string> cells_of(const StudyView& view, const TrialRow& row) {
  std::vector<std::string> cells{std::to_string(row.id)};
  for (const std::string& value : row.trial.values) cells.push_back(printable(value, 40));
  if (repeated(view)) cells.push_back(std::to_string(row.trial.seed));
  cells.emplace_back(name_of(row.state));
  for (const std::string& metric : view.metrics)
    cells.push_back(named_figure(metric, study::figure_of(row, metric)));
  for (const std::string& name : forecast_names(view)) {
    const auto figure = row.forecast.find(name);
    cells.push_back(figure == row.forecast.end() ? "-" : banded(row, name));
  }
  cells.push_back(named_figure("cpu_cores", study::figure_of(row, "cpu_cores")));
  cells.push_back(named_figure("peak_bytes", study::figure_of(row, "peak_bytes")));
  cells.push_back(seconds_text(row.wall_s));
  return cells;
}

/// Each reason once, with the trials that it holds for.
std::string reasons(const StudyView& view) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> found;
  for (const TrialRow& row : view.rows) {
    if (row.reason.empty()) continue;
    const std::string text =
        std::string(name_of(row.state)) + ", " + printable(row.reason, kLongestReason);
    const auto same = std::ranges::find(found, text, [](const auto& one) { return one.first; });
    if (same == found.end()) found.push_back({text, {row.id}});
    else same->second.push_back(row.id);
  }
  std::string all;
  for (std::size_t i = 0; i < std::min(found.size(), kMostReasons); ++i) {
    const auto& [text, trials] = found[i];
    std::string numbers;
    for (std::size_t t = 0; t < std::min<std::size_t>(trials.size(), 8); ++t)
      numbers += (t == 0 ? "" : ", ") + std::to_string(trials[t]);
    if (trials.size() > 8) numbers += fmt::format(" and {} more", trials.size() - 8);
    all += fmt::format("  {} {}: {}\n", trials.size() == 1 ? "trial" : "trials", numbers, text);
  }
  if (found.size() > kMostReasons)
    all += fmt::format(
        "  and {}: --csv has all\n",
        counted(static_cast<std::int64_t>(found.size() - kMostReasons), "other reason"));
  return all.empty() ? all : "\n" + all;
}

std::set<std::size_t> left_columns(const StudyView& view) {
  std::set<std::size_t> left;
  for (std::size_t i = 0; i < view.axes.size(); ++i) left.insert(i + 1);
  left.insert(view.axes.size() + 1 + (repeated(view) ? 1 : 0));
  return left;
}

}  // namespace

std::string counts_text(const std::map<TrialState, std::int64_t>& counts) {
  std::int64_t all = 0;
  std::string parts;
  for (const auto& [state, count] : counts) {
    all += count;
    std::string name(name_of(state));
    std::ranges::replace(name, '_', ' ');
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", with_commas(count), name);
  }
  return fmt::format("{} {}: {}", with_commas(all), all == 1 ? "trial" : "trials", parts);
}

std::string study_text(const StudyView& view) {
  std::string text =
      (view.study.name.empty() ? "" : printable(view.study.name) + ": ") +
      counts_text(view.counts) +
      (view.running_by.empty() ? "\n\n" : "; run by " + printable(view.running_by) + "\n\n");
  std::vector<std::vector<std::string>> table{heading(view)};
  for (std::size_t i = 0; i < std::min(view.rows.size(), kMostTrialRows); ++i)
    table.push_back(cells_of(view, view.rows[i]));
  const auto left = left_columns(view);
  text += layout::table(table, {left.begin(), left.end()});
  if (view.rows.size() > kMostTrialRows)
    text += fmt::format("  ... and {} more: --where chooses, --csv has all\n",
                        with_commas(static_cast<std::int64_t>(view.rows.size() - kMostTrialRows)));
  return text + reasons(view);
}

std::string groups_text(const StudyView& view, const std::vector<std::string>& by,
                        const std::vector<study::Group>& groups) {
  std::vector<std::vector<std::string>> table(1);
  std::vector<std::size_t> left;
  for (const std::string& name : by) {
    left.push_back(table[0].size());
    table[0].push_back(printable(name));
  }
  table[0].insert(table[0].end(), {"trials", "done"});
  for (const std::string& metric : view.metrics) {
    table[0].push_back(printable(metric));
    table[0].emplace_back("+-");
  }
  for (const study::Group& group : groups) {
    std::vector<std::string> cells;
    for (const std::string& value : group.values) cells.push_back(printable(value, 40));
    cells.push_back(std::to_string(group.trials));
    cells.push_back(std::to_string(group.done));
    for (std::size_t m = 0; m < group.means.size(); ++m) {
      const auto& mean = group.means[m];
      cells.push_back(
          named_figure(view.metrics[m], mean.count > 0 ? std::optional(mean.mean) : std::nullopt));
      cells.push_back(named_figure(view.metrics[m], mean.deviation));
    }
    table.push_back(std::move(cells));
  }
  return layout::table(table, left) + "\n+- is the standard deviation over trials\n";
}

std::string trial_text(const StudyView& view, const TrialRow& row, const std::string& command,
                       const std::string& folder) {
  std::string text = fmt::format("trial {}", row.id);
  for (std::size_t i = 0; i < view.axes.size(); ++i)
    text += fmt::format(" {}={}", printable(view.axes[i]), printable(row.trial.values[i]));
  text += fmt::format(" seed={}: {}{}\n", row.trial.seed, name_of(row.state),
                      row.reason.empty() ? "" : ", " + printable(row.reason));
  if (row.retry_of) text += fmt::format("  runs trial {} again\n", *row.retry_of);
  text += fmt::format("  command  {}\n  folder   {}\n", printable(command), printable(folder));
  if (!row.host.empty())
    text += fmt::format("  ran      {} on {}\n", seconds_text(row.wall_s), printable(row.host));
  for (const auto& [what, figures] : {std::pair{"metric", &row.metrics},
                                      {"resource", &row.resources},
                                      {"forecast", &row.forecast}}) {
    for (const auto& [name, value] : *figures)
      text += fmt::format("  {:8} {} = {}\n", what, printable(name), named_figure(name, value));
  }
  if (!row.tail.empty()) {
    text += "\nits last lines\n";
    for (const std::string& line : split(row.tail, '\n')) text += "  " + printable(line) + "\n";
  }
  return text;
}

std::string progress_line(const study::Study& study, const TrialRow& row, std::int64_t ended,
                          std::int64_t all) {
  std::string text = fmt::format("{}/{} {}", ended, all, name_of(row.state));
  const auto names = study::axis_names(study);
  for (std::size_t i = 0; i < std::min(names.size(), row.trial.values.size()); ++i)
    text += fmt::format(" {}={}", printable(names[i]), printable(row.trial.values[i], 40));
  if (study.repeat > 1) text += fmt::format(" seed={}", row.trial.seed);
  std::string figures;
  for (const auto& [name, value] : row.metrics)
    figures += fmt::format("{}{} {}", figures.empty() ? "" : ", ", printable(name),
                           named_figure(name, value));
  if (!figures.empty()) text += ": " + figures;
  if (row.wall_s) text += " (" + seconds_text(row.wall_s) + ")";
  if (!row.reason.empty()) text += ": " + printable(row.reason, kLongestReason);
  return text;
}

}  // namespace stoker
