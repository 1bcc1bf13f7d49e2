#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// What trials of a search report on their way, and what can be said of it.
namespace stoker::tune {

/// What a search makes as good as it can. Scores are the metric, with its sign turned where less is
/// better, so that everything behind this compares them one way: more is better. With a target and
/// an energy weight a trial ends at the target, and the less that cost (energy.h) the better it is.
struct Objective {
  std::string metric = "accuracy";
  bool most = true;
  std::optional<double> target{};         ///< a score
  std::optional<double> energy_weight{};  ///< of energy against time; nothing: by the metric

  [[nodiscard]] double score(double value) const { return most ? value : -value; }
  [[nodiscard]] bool by_cost() const { return target && energy_weight; }
  /// A score as the metric that it is of, "0.8412".
  [[nodiscard]] std::string text(double score) const;
  /// What a trial as a whole came to: its best score, or less its cost in joules by_cost().
  [[nodiscard]] std::string result_text(double result) const;
  /// A trial's result with what it is: "accuracy 0.8412", "1.2 kJ to accuracy 0.75".
  [[nodiscard]] std::string named_result(double result) const;
};

/// One evaluation.
struct Point {
  double step = 0;
  double seconds = 0;  ///< since the first report
  double score = 0;    ///< finite
};

/// One report of a loop, whatever it tells.
struct Mark {
  double step = 0, seconds = 0, samples = 0;
};

/// A trial as far as it has come. Steps do not fall.
struct Curve {
  std::vector<Point> points{};
  std::vector<Mark> marks{};
  /// The step from which on the metric or the loss was not finite several times running.
  std::optional<double> diverged_at{};

  [[nodiscard]] double last_step() const;
};

/// Index of the best of the first `count` points; the first of equals. There is one at least.
[[nodiscard]] std::size_t best_of(const std::vector<Point>& points, std::size_t count);

/// The best score up to and with `step`; nothing before the first evaluation.
[[nodiscard]] std::optional<double> best_until(const std::vector<Point>& points, double step);

/// The last score up to and with `step`.
[[nodiscard]] std::optional<double> score_at(const std::vector<Point>& points, double step);

/// Standard deviation of evaluations around their trend: of the second differences in the later
/// half, whose variance is six times that of independent errors around a straight line. Nothing
/// from fewer than five points.
[[nodiscard]] std::optional<double> noise_of(const std::vector<Point>& points);

/// A run that went on where `before` had stopped: both as one. A run that began anew replaces it;
/// `restarted` says so. Seconds of what follows are counted on from what went before.
struct Continued {
  Curve curve;
  bool restarted = false;
};
[[nodiscard]] Continued continued(const Curve& before, const Curve& after);

/// Samples a second without the warm-up (study::steady_rate); of reports that say no samples, from
/// their steps and `batch`. Nothing where neither is told.
[[nodiscard]] std::optional<double> rate_of(const Curve& curve, std::optional<double> batch);

}  // namespace stoker::tune
