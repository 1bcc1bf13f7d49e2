#include "tune/curve/curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "study/runner/metric_reader.h"
#include "tune/curve/energy.h"

namespace stoker::tune {

std::string Objective::text(double score) const {
  const double value = most ? score : -score;
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

std::string Objective::result_text(double result) const {
  return by_cost() ? joules_text(-result) : text(result);
}

std::string Objective::named_result(double result) const {
  if (!by_cost()) return metric + " " + text(result);
  return fmt::format("{} to {} {}", joules_text(-result), metric, text(*target));
}

double Curve::last_step() const {
  if (!points.empty()) return points.back().step;
  return marks.empty() ? 0 : marks.back().step;
}

std::size_t best_of(const std::vector<Point>& points, std::size_t count) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < std::min(count, points.size()); ++i) {
    if (points[i].score > points[best].score) best = i;
  }
  return best;
}

std::optional<double> best_until(const std::vector<Point>& points, double step) {
  std::optional<double> best;
  for (const Point& point : points) {
    if (point.step > step) break;
    best = std::max(best.value_or(point.score), point.score);
  }
  return best;
}

std::optional<double> score_at(const std::vector<Point>& points, double step) {
  std::optional<double> last;
  for (const Point& point : points) {
    if (point.step > step) break;
    last = point.score;
  }
  return last;
}

std::optional<double> noise_of(const std::vector<Point>& points) {
  constexpr std::size_t kFewest = 5;
  if (points.size() < kFewest) return std::nullopt;
  const std::size_t from = std::min(points.size() / 2, points.size() - kFewest);
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = from + 1; i + 1 < points.size(); ++i, ++count) {
    const double bend = points[i - 1].score - 2 * points[i].score + points[i + 1].score;
    sum += bend * bend;
  }
  return std::sqrt(sum / (6 * static_cast<double>(count)));
}

Continued continued(const Curve& before, const Curve& after) {
  if (before.marks.empty() && before.points.empty()) return {after, false};
  const auto first = [](const Curve& curve) {
    return curve.marks.empty() ? (curve.points.empty() ? INFINITY : curve.points.front().step)
                               : curve.marks.front().step;
  };
  if (first(after) <= first(before)) return {after, true};
  Continued result{after, false};
  const double from = first(after);
  double seconds = 0;
  for (const Mark& mark : before.marks)
    if (mark.step < from) seconds = mark.seconds;
  const auto join = [from, seconds](const auto& earlier, auto& later) {
    auto all = earlier;
    std::erase_if(all, [from](const auto& one) { return one.step >= from; });
    for (auto& one : later) one.seconds += seconds;
    all.insert(all.end(), later.begin(), later.end());
    later = std::move(all);
  };
  join(before.points, result.curve.points);
  join(before.marks, result.curve.marks);
  return result;
}

std::optional<double> rate_of(const Curve& curve, std::optional<double> batch) {
  std::vector<std::pair<double, double>> samples;
  for (const Mark& mark : curve.marks) {
    if (mark.samples > 0) samples.emplace_back(mark.seconds, mark.samples);
  }
  if (samples.size() >= 2) return study::steady_rate(samples);
  samples.clear();
  if (!batch) return std::nullopt;
  for (std::size_t i = 0; i < curve.marks.size(); ++i) {
    const double steps = i == 0 ? 0 : curve.marks[i].step - curve.marks[i - 1].step;
    if (i > 0 && steps <= 0) continue;
    samples.emplace_back(curve.marks[i].seconds, steps * *batch);
  }
  return study::steady_rate(samples);
}

}  // namespace stoker::tune
