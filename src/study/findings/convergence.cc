#include "study/findings/convergence.h"

#include <algorithm>
#include <cmath>

namespace stoker::study {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Curves of one setting.
struct Run {
  std::vector<std::string> values;
  std::vector<const std::vector<MetricPoint>*> curves;
};

std::vector<Run> runs_of(const StudyView& view, const Curves& curves) {
  std::vector<Run> runs;
  std::map<std::vector<std::string>, std::size_t> places;
  for (const TrialRow& row : view.rows) {
    const auto found = curves.find(row.id);
    if (row.state != TrialState::kDone || found == curves.end() || found->second.size() < 2)
      continue;
    const auto [place, is_new] = places.emplace(row.trial.values, runs.size());
    if (is_new) runs.push_back({row.trial.values, {}});
    runs[place->second].curves.push_back(&found->second);
  }
  return runs;
}

double best_of(const std::vector<MetricPoint>& curve, bool most) {
  double best = curve.front().value;
  for (const MetricPoint& p : curve)
    best = most ? std::max(best, p.value) : std::min(best, p.value);
  return best;
}

/// The last value that was known then.
std::optional<double> value_at(const std::vector<MetricPoint>& curve, double seconds) {
  std::optional<double> value;
  for (const MetricPoint& p : curve) {
    if (p.seconds <= seconds) value = p.value;
  }
  return value;
}

Approach approach_of(const Run& run, const Convergence& c) {
  Approach a{run.values, static_cast<std::int64_t>(run.curves.size())};
  std::vector<double> steps, seconds, bests, lasts;
  for (const auto* curve : run.curves) {
    bests.push_back(best_of(*curve, c.most));
    lasts.push_back(curve->back().value);
    const auto there = std::ranges::find_if(*curve, [&](const MetricPoint& p) {
      return c.most ? p.value >= c.target : p.value <= c.target;
    });
    if (there == curve->end()) continue;
    ++a.reached;
    seconds.push_back(there->seconds);
    if (there->step) steps.push_back(*there->step);
  }
  a.best = median(bests);
  a.last = median(lasts);
  // A median over those that came there alone would favour settings that seldom do.
  if (2 * a.reached > a.trials) {
    a.seconds = median(seconds);
    if (steps.size() == seconds.size()) a.step = median(steps);
  }
  for (const double time : c.times) {
    std::vector<double> values;
    for (const auto* curve : run.curves) {
      if (const auto value = value_at(*curve, time)) values.push_back(*value);
    }
    a.at.push_back(values.empty() ? std::nullopt : std::optional(median(values)));
  }
  return a;
}

}  // namespace

std::optional<Convergence> convergence(const StudyView& view, const std::string& metric,
                                       const Curves& curves, bool most,
                                       std::optional<double> target) {
  const auto runs = runs_of(view, curves);
  if (runs.size() < 2) return std::nullopt;
  Convergence c{metric, most, 0, target.has_value(), {}, {}};
  std::vector<double> bests;
  double shortest = INFINITY;
  for (const Run& run : runs) {
    std::vector<double> of_run;
    for (const auto* curve : run.curves) {
      of_run.push_back(best_of(*curve, most));
      shortest = std::min(shortest, curve->back().seconds);
    }
    bests.push_back(median(of_run));
  }
  std::ranges::sort(bests);
  if (most) std::ranges::reverse(bests);
  c.target = target.value_or(bests[(bests.size() - 1) / 2]);
  for (const double part : {1.0 / 3, 2.0 / 3, 1.0}) c.times.push_back(shortest * part);
  for (const Run& run : runs) c.approaches.push_back(approach_of(run, c));
  std::ranges::stable_sort(c.approaches, [&](const Approach& a, const Approach& b) {
    if (a.seconds.has_value() != b.seconds.has_value()) return a.seconds.has_value();
    if (a.seconds) return *a.seconds < *b.seconds;
    return most ? a.best > b.best : a.best < b.best;
  });
  return c;
}

}  // namespace stoker::study
