#include "report/tune/tune_page.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "report/html/study_parts.h"

namespace stoker {
namespace {

using namespace page;

/// Behind the user's axes a trial of a search has values of its own, which say nothing here.
constexpr std::string_view kFirstOwnAxis = "stage";
/// The last ones: what was decided first counts least.
constexpr double kMostDecisions = 200;

Shown time_shown(double seconds) { return plain(human_time(kSecond * seconds), seconds); }

std::string choice_words(const TuneReport& report) {
  if (!report.choice) return report.problem.empty() ? "Nothing chosen yet" : report.problem;
  std::string text = report.over.empty() && report.problem.empty() ? "Take" : "Best so far";
  for (std::size_t i = 0; i < std::min(report.axes.size(), report.choice->values.size()); ++i)
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", report.axes[i], report.choice->values[i]);
  if (report.choice->score) text += ": " + report.objective.named_result(*report.choice->score);
  return text;
}

Json decisions(const TuneReport& report) {
  std::vector<std::vector<Cell>> rows;
  double number = 0;
  for (const tune::Decision& d : report.decisions) {
    ++number;
    if (number + kMostDecisions <= static_cast<double>(report.decisions.size())) continue;
    rows.push_back({{"", plain(fmt::format("{:.0f}", number), number)},
                    {d.what, {}},
                    {d.why, {}},
                    d.saved_s > 0 ? Cell{"", time_shown(d.saved_s)} : Cell{"-", {}}});
  }
  if (rows.empty()) return {};
  return table({{"#"}, {"decided", false}, {"because", false}, {"saved about"}}, rows);
}

/// Without values of the search's own that are the same in all trials, or count them anew.
study::StudyView without_idle_values(study::StudyView view) {
  const auto first =
      std::find(view.axes.begin(), view.axes.end(), kFirstOwnAxis) - view.axes.begin();
  for (auto at = std::ssize(view.axes) - 1; at > first; --at) {
    const auto value = [&](const study::TrialRow& row) {
      return row.trial.values[static_cast<std::size_t>(at)];
    };
    const bool counts = std::ranges::all_of(
        view.rows, [&](const auto& row) { return value(row) == std::to_string(row.id); });
    const bool same = std::ranges::all_of(
        view.rows, [&](const auto& row) { return value(row) == value(view.rows.front()); });
    if (!counts && !same) continue;
    view.axes.erase(view.axes.begin() + at);
    for (study::TrialRow& row : view.rows) row.trial.values.erase(row.trial.values.begin() + at);
  }
  return view;
}

Json curves_plot(const TuneReport& report, const study::StudyView& view,
                 const study::Curves& curves, CurveAxis axis) {
  Lines plot;
  plot.x.label = axis == CurveAxis::kStep ? "step" : "seconds";
  plot.y.label = report.objective.metric;
  study::StudyView users = view;
  const auto own = std::find(users.axes.begin(), users.axes.end(), kFirstOwnAxis);
  users.axes.erase(own, users.axes.end());
  plot.lines = curve_lines(users, curves, axis, kCurvePoints / 2);
  if (report.choice) {
    const std::string chosen = fmt::format("trial {}:", report.choice->trial);
    for (Line& line : plot.lines) line.chosen = line.label.starts_with(chosen);
  }
  plot.ends = {{Verdict::kGood, "went to its end"},
               {Verdict::kRisky, "stopped: it had shown enough"},
               {Verdict::kBad, "failed"}};
  Json block = lines(plot);
  if (!block.is_null()) block["title"] = axis == CurveAxis::kStep ? "by step" : "by time";
  return block;
}

}  // namespace

std::string tune_page(const TuneReport& report, const study::StudyView& view,
                      const study::Curves& curves, std::string_view version) {
  Page page(
      "tune",
      view.study.name.empty() ? report.store.substr(report.store.rfind('/') + 1) : view.study.name,
      fmt::format("{} {} by {}", report.objective.most ? "most" : "least", report.objective.metric,
                  report.method));
  std::vector<std::string> head;
  if (!report.command.empty()) head.push_back(report.command);
  if (!report.over.empty()) head.push_back("Stopped: " + report.over + ".");
  const bool done = report.choice && report.over.empty() && report.problem.empty();
  page.headline(done                     ? Verdict::kGood
                : report.problem.empty() ? Verdict::kRisky
                                         : Verdict::kBad,
                choice_words(report), head);
  page.tile("Spent", time_shown(report.spent.seconds), "all trials together");
  page.tile("Trials",
            plain(with_commas(report.spent.trials), static_cast<double>(report.spent.trials)));
  page.tile("Saved about", time_shown(report.spent.saved_s), "by stopping early and not running");
  if (report.spent.gpu_hours > 0)
    page.tile("GPU-hours",
              plain(fmt::format("{:.2g}", report.spent.gpu_hours), report.spent.gpu_hours));
  page.section("What was decided, and why", "In the order of the search.", {decisions(report)});
  page.section(
      "Curves of all trials",
      "What each trial reported on its way; the dot is how it ended, the bold line is what "
      "was chosen.",
      {curves_plot(report, view, curves, CurveAxis::kStep),
       curves_plot(report, view, curves, CurveAxis::kSeconds)});
  page.section("Trials", trials_words(view), {trials_table(without_idle_values(view))});
  page.text(tune_text(report));
  return page.html(version);
}

}  // namespace stoker
