#include "study/findings/findings.h"

#include <algorithm>

namespace stoker::study {
namespace {

constexpr const char* kThroughput = "samples_per_s";
constexpr const char* kTime = "wall_s";
constexpr const char* kCost = "cost";

bool better(double a, double b, bool most) { return most ? a > b : a < b; }

std::optional<Best> best_by(const StudyView& view, const std::string& figure, bool most) {
  auto settings = settings_of(view, {figure});
  std::erase_if(settings, [](const Setting& s) { return !s.figures[0]; });
  if (settings.size() < 2) return std::nullopt;
  std::ranges::stable_sort(settings, [&](const Setting& a, const Setting& b) {
    return better(*a.figures[0], *b.figures[0], most);
  });
  return Best{figure, most, settings[0], settings[1].figures[0]};
}

/// Whether a is nowhere worse than b and somewhere better.
bool dominates(const Setting& a, const Setting& b, const std::vector<bool>& most) {
  bool somewhere = false;
  for (std::size_t i = 0; i < most.size(); ++i) {
    if (better(*b.figures[i], *a.figures[i], most[i])) return false;
    somewhere = somewhere || better(*a.figures[i], *b.figures[i], most[i]);
  }
  return somewhere;
}

std::vector<ParetoPoint> pareto_of(const StudyView& view, const std::vector<std::string>& figures,
                                   const std::vector<bool>& most) {
  auto settings = settings_of(view, figures);
  std::erase_if(settings, [](const Setting& s) {
    return std::ranges::any_of(s.figures, [](const auto& figure) { return !figure; });
  });
  // Sorted by the first figure, a setting can be beaten by those before it alone.
  std::ranges::stable_sort(settings, [&](const Setting& a, const Setting& b) {
    for (std::size_t i = 0; i < most.size(); ++i) {
      if (*a.figures[i] != *b.figures[i]) return better(*a.figures[i], *b.figures[i], most[i]);
    }
    return false;
  });
  std::vector<ParetoPoint> front;
  for (const Setting& setting : settings) {
    const bool beaten = std::ranges::any_of(
        front, [&](const ParetoPoint& point) { return dominates(point.setting, setting, most); });
    if (!beaten) front.push_back({setting});
  }
  return front;
}

}  // namespace

Findings findings(const StudyView& view) {
  Findings result;
  std::vector<std::string> figures{kTime};
  std::vector<bool> most{false};
  const bool priced = std::ranges::any_of(
      view.rows, [](const TrialRow& row) { return row.resources.contains(kCost); });
  if (priced) {
    figures.emplace_back(kCost);
    most.push_back(false);
  }
  for (const std::string& metric : view.metrics) {
    if (metric == kTime || metric == kCost) continue;
    const auto more = more_is_better(view.study, metric);
    if (!more) {
      result.undecided.push_back(metric);
      continue;
    }
    figures.push_back(metric);
    most.push_back(*more);
  }
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (auto best = best_by(view, figures[i], most[i])) result.best.push_back(std::move(*best));
    Findings::OfMetric one{figures[i], effects(view, figures[i]), interactions(view, figures[i]),
                           noise(view, figures[i])};
    if (!one.effects.empty()) result.metrics.push_back(std::move(one));
  }
  // Throughput is the time of a sample again; beside what was learnt, the trial's time counts.
  std::vector<std::string> shown;
  std::vector<bool> goals;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i] == kThroughput && figures.size() > 2) continue;
    shown.push_back(figures[i]);
    goals.push_back(most[i]);
  }
  if (shown.size() > 1) {
    result.pareto = pareto_of(view, shown, goals);
    result.pareto_figures = std::move(shown);
  }
  result.scalings = scalings(view, kThroughput);
  return result;
}

}  // namespace stoker::study
