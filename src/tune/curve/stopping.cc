#include "tune/curve/stopping.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "study/findings/statistics.h"

namespace stoker::tune {
namespace {

/// Upper end of the slope of the points from `from` to `count`.
double steepest_slope(const std::vector<Point>& points, std::size_t from, std::size_t count) {
  const auto n = static_cast<double>(count - from);
  double step = 0, score = 0;
  for (std::size_t i = from; i < count; ++i) {
    step += points[i].step / n;
    score += points[i].score / n;
  }
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = from; i < count; ++i) {
    const double dx = points[i].step - step, dy = points[i].score - score;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  if (xx == 0) return INFINITY;
  const double slope = xy / xx, left = std::max(yy - slope * xy, 0.0);
  if (count - from < 3) return INFINITY;
  const double error = std::sqrt(left / (n - 2) / xx);
  return slope + study::student_t(static_cast<std::int64_t>(count - from) - 2) * error;
}

}  // namespace

std::optional<std::string> out_of_patience(const std::vector<Point>& points, std::size_t count,
                                           const StopRules& rules, const Objective& objective) {
  if (rules.patience <= 0 || count == 0) return std::nullopt;
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (points[i].score > points[best].score + rules.min_delta) best = i;
  }
  if (count - 1 - best < static_cast<std::size_t>(rules.patience)) return std::nullopt;
  return fmt::format("no better than {} of step {:.6g} in {} evaluations",
                     objective.text(points[best].score), points[best].step, count - 1 - best);
}

std::optional<std::string> will_not_catch_up(const std::vector<Point>& points, std::size_t count,
                                             const Reference& reference, const StopRules& rules,
                                             const Objective& objective) {
  const auto& known = *reference.points;
  if (count < rules.fewest || known.empty()) return std::nullopt;
  const double step = points[count - 1].step, end = known.back().step;
  if (step < rules.min_share * end || step >= end) return std::nullopt;
  const auto there = best_until(known, step);
  const double best = points[best_of(points, count)].score;
  if (!there || best >= *there) return std::nullopt;
  const double target = known[best_of(known, known.size())].score;
  const std::size_t from = std::min(count / 2, count - std::min<std::size_t>(count, 4));
  const double reach = best + std::max(steepest_slope(points, from, count), 0.0) * (end - step);
  if (reach + rules.min_delta >= target) return std::nullopt;
  return fmt::format(
      "at step {:.6g} it has {} where {} had {}, and rising as it does (95 %) it reaches {} by "
      "step "
      "{:.6g}, not {}",
      step, objective.text(best), reference.name, objective.text(*there), objective.text(reach),
      end, objective.text(target));
}

std::optional<std::string> below_median(const std::vector<Point>& points, std::size_t count,
                                        const std::vector<const Curve*>& others,
                                        const MedianRule& rule, const Objective& objective) {
  if (count == 0) return std::nullopt;
  const double step = points[count - 1].step;
  if (step < rule.warm_up) return std::nullopt;
  std::vector<double> scores;
  for (const Curve* other : others) {
    if (other->points.empty() || other->points.back().step < step) continue;
    if (const auto score = score_at(other->points, step)) scores.push_back(*score);
  }
  if (scores.size() < std::max<std::size_t>(rule.startup, 1)) return std::nullopt;
  std::ranges::sort(scores);
  const std::size_t middle = scores.size() / 2;
  const double median =
      scores.size() % 2 == 1 ? scores[middle] : (scores[middle - 1] + scores[middle]) / 2;
  const double best = points[best_of(points, count)].score;
  if (best >= median) return std::nullopt;
  return fmt::format("at step {:.6g} its best, {}, is worse than {}, the median of {} others there",
                     step, objective.text(best), objective.text(median), scores.size());
}

}  // namespace stoker::tune
