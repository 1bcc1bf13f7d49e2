#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/counted.h"
#include "base/percent.h"
#include "base/text.h"
#include "report/model/input_validation_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

constexpr std::size_t kLargest = 8;  ///< errors that are listed by name

std::string answer(const InputValidation& v) {
  std::string text = fmt::format(
      "Forecasts beside {} real DataLoaders, from one calibration each: epoch time {} mean error, "
      "{} worst\n",
      v.points.size(), exact_percent(v.epoch.mean), exact_percent(v.epoch.worst));
  if (v.failures.empty()) return text + "Every bar is reached\n";
  text += fmt::format("{} bar{} missed:\n", v.failures.size(), v.failures.size() == 1 ? "" : "s");
  for (const std::string& failure : v.failures) text += "  " + failure + "\n";
  return text;
}

std::string summary_table(const InputValidation& v, const InputBars& bars) {
  const auto row = [](const std::string& name, const ErrorSummary& s, const std::string& bar) {
    if (s.count == 0) return std::vector<std::string>{name, "0", "-", "-", "-", bar, ""};
    return std::vector<std::string>{name,
                                    std::to_string(s.count),
                                    exact_percent(s.mean),
                                    exact_percent(s.worst),
                                    signed_percent(s.bias),
                                    bar,
                                    s.worst_label};
  };
  std::vector<std::vector<std::string>> rows{
      {"", "points", "mean", "worst", "bias", "to reach", "worst at"},
      row("epoch time", v.epoch,
          fmt::format("mean {}, worst {}", exact_percent(bars.epoch_mean),
                      exact_percent(bars.epoch_worst))),
      row("first batch", v.first_batch,
          fmt::format("mean {}", exact_percent(bars.first_batch_mean))),
      row("shared memory, window full", v.shared_memory,
          fmt::format("worst {}", exact_percent(bars.shared_memory_worst))),
      row("shared memory elsewhere", v.shared_memory_elsewhere, "no more than the window holds")};
  return table(rows, {0, 5, 6}) +
         fmt::format("  {} of the epochs lie within their 90 % band\n", exact_percent(v.coverage));
}

std::string recommendations_table(const InputValidation& v) {
  if (v.recommendations.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"scenario", "settings", "forecast's best", "measured best", "lost"}};
  for (const RecommendationCheck& c : v.recommendations)
    rows.push_back(
        {c.scenario, std::to_string(c.settings), c.chosen, c.best, exact_percent(c.loss)});
  return "\nThe recommended workers against the best of the same measured settings\n" +
         table(rows, {0, 2, 3});
}

std::string scenarios_table(const InputValidation& v) {
  std::vector<std::vector<std::string>> rows{{"scenario", "points", "mean", "worst", "bias"}};
  for (const auto& [name, s] : v.by_scenario) {
    rows.push_back({name, std::to_string(s.count), exact_percent(s.mean), exact_percent(s.worst),
                    signed_percent(s.bias)});
  }
  return "\nEpoch time by scenario\n" + table(rows, {0});
}

std::string points_table(const InputValidation& v) {
  std::vector<std::vector<std::string>> rows{{"point", "epoch s", "forecast", "error", "first ms",
                                              "forecast", "error", "shm MB", "error", "limit"}};
  for (const ComparedPoint& p : v.points) {
    rows.push_back({p.label(), fmt::format("{:.3f}", seconds(p.epoch)),
                    fmt::format("{:.3f}", seconds(p.forecast_epoch())),
                    signed_percent(p.epoch_error),
                    fmt::format("{:.0f}", milliseconds(p.first_batch)),
                    fmt::format("{:.0f}", milliseconds(p.forecast_first_batch())),
                    signed_percent(p.first_batch_error),
                    fmt::format("{:.2f}", static_cast<double>(p.shared_memory.count()) * 1e-6),
                    p.shared_memory_error ? signed_percent(*p.shared_memory_error) : "-",
                    std::string(input_limit_text(p.forecast.limit))});
  }
  return "\nEvery point\n" + table(rows, {0, 9});
}

std::string largest_errors(const InputValidation& v) {
  std::vector<const ComparedPoint*> sorted;
  double all = 0;
  for (const ComparedPoint& p : v.points) {
    sorted.push_back(&p);
    all += std::abs(p.epoch_error);
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::abs(a->epoch_error) > std::abs(b->epoch_error);
  });
  if (sorted.size() > kLargest) sorted.resize(kLargest);
  double these = 0;
  std::string text;
  for (const ComparedPoint* p : sorted) {
    these += std::abs(p->epoch_error);
    text += fmt::format("  {:>8}  {}\n", signed_percent(p->epoch_error), p->label());
  }
  return fmt::format("\n{} of all error lie{} in {}\n", percent(all > 0 ? these / all : 0),
                     sorted.size() == 1 ? "s" : "", counted(std::ssize(sorted), "point")) +
         text;
}

std::string left_out(const InputValidation& v, const LoaderRuns& runs) {
  std::string text;
  if (!v.dropped.empty()) {
    text += fmt::format("\n{} point{} dropped by the rule below\n", v.dropped.size(),
                        v.dropped.size() == 1 ? "" : "s");
    for (const DroppedPoint& d : v.dropped) text += fmt::format("  {}: {}\n", d.label, d.why);
  }
  for (const LoaderRuns::Skipped& s : runs.skipped)
    text += fmt::format("skipped {}: {}\n", s.name, s.why);
  return text;
}

}  // namespace

std::string validation_text(const InputValidation& v, const LoaderRuns& runs,
                            const InputBars& bars) {
  std::string text = answer(v) + "\n" + summary_table(v, bars) + recommendations_table(v) +
                     scenarios_table(v) + largest_errors(v) + points_table(v) + left_out(v, runs);
  text += "\n" + labelled("Measured", {runs.date, runs.cpu_model, counted(runs.cores, "core"),
                                       "Python " + runs.python, "torch " + runs.torch});
  return text + labelled("Rule", {runs.rule});
}

}  // namespace stoker
