#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/findings/selection.h"

namespace stoker::study {

/// What trials reported of one metric on their way, by trial.
using Curves = std::map<std::int64_t, std::vector<MetricPoint>>;

/// How one setting comes to a target; medians over its repetitions.
struct Approach {
  std::vector<std::string> values;
  std::int64_t trials = 0;
  std::int64_t reached = 0;         ///< trials that came to the target
  std::optional<double> step{};     ///< or epoch, at the first value that reaches it
  std::optional<double> seconds{};  ///< likewise, since the trial started
  /// The metric after Convergence::times; nothing where it was not known yet.
  std::vector<std::optional<double>> at{};
  double best = 0, last = 0;
};

/// When settings reach a value of a metric, and how they stand after equal times: epochs alone
/// would favour settings whose epochs are long.
struct Convergence {
  std::string metric;
  bool most = true;
  double target = 0;
  bool asked = false;  ///< the user named it; else the best value that half of the settings reach
  std::vector<double> times;  ///< a third, two thirds and all of the time that every setting ran
  std::vector<Approach> approaches;  ///< by time to the target, those that reach it first
};

/// nullopt: no two settings with at least two values on their way.
[[nodiscard]] std::optional<Convergence> convergence(const StudyView& view,
                                                     const std::string& metric,
                                                     const Curves& curves, bool most,
                                                     std::optional<double> target = std::nullopt);

}  // namespace stoker::study
