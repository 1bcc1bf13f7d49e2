#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/findings/selection.h"
#include "study/findings/statistics.h"

namespace stoker::study {

/// What one value of an axis does to a metric, beside the axis's first value, in trials that differ
/// in nothing else (pairs). Where all values are positive a change is a ratio, else a difference.
struct LevelEffect {
  std::string value;
  MeanInterval change;                 ///< of logarithms where `ratio`, of differences else
  std::int64_t worse = 0, better = 0;  ///< pairs, by the metric's goal
};

/// The effect of one axis on one metric.
struct AxisEffect {
  std::string axis, metric;
  bool ratio = true;
  std::string base;  ///< the value that the others are set beside
  std::vector<LevelEffect> levels;
  /// How far apart the mean changes of two values are: what orders axes by what they matter.
  double spread = 0;
};

/// The effects of every axis that has pairs, those that matter most first.
[[nodiscard]] std::vector<AxisEffect> effects(const StudyView& view, const std::string& metric);

/// Which value of one axis is best depends on another's value.
struct Interaction {
  std::string axis, given;
  std::vector<std::pair<std::string, std::string>> best;  ///< value of `given` -> best of `axis`
  double gain = 0;  ///< relative, of choosing for each value over the best for all, at most
};
[[nodiscard]] std::vector<Interaction> interactions(const StudyView& view,
                                                    const std::string& metric);

/// How much repetitions of one setting differ: the standard deviation pooled over settings,
/// relative to their means.
struct Noise {
  double relative = 0;
  std::int64_t settings = 0, degrees = 0;
};
[[nodiscard]] std::optional<Noise> noise(const StudyView& view, const std::string& metric);

/// Whether more of a metric is better; nullopt: not known, say max or min.
[[nodiscard]] std::optional<bool> more_is_better(const Study& study, const std::string& metric);

/// Means over repetitions: one row a setting, with the metrics that were asked for.
struct Setting {
  std::vector<std::string> values;
  std::int64_t trials = 0;
  std::vector<std::optional<double>> figures;
};
[[nodiscard]] std::vector<Setting> settings_of(const StudyView& view,
                                               const std::vector<std::string>& figures);

}  // namespace stoker::study
