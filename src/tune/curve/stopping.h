#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tune/curve/curve.h"

/// When a trial has shown enough: functions of its points so far and of curves that are known. Each
/// looks at the first `count` points and answers the reason in a sentence, or nothing: go on.
namespace stoker::tune {

struct StopRules {
  int patience = 0;      ///< evaluations without improvement; 0: never
  double min_delta = 0;  ///< what counts as one
  /// The catch-up test says nothing before this part of the reference's steps...
  double min_share = 0.2;
  /// ... and with fewer evaluations than this.
  std::size_t fewest = 4;
};

/// The best of all evaluations is `patience` evaluations old.
[[nodiscard]] std::optional<std::string> out_of_patience(const std::vector<Point>& points,
                                                         std::size_t count, const StopRules& rules,
                                                         const Objective& objective);

/// A curve that would have to be caught up with.
struct Reference {
  const std::vector<Point>* points = nullptr;
  std::string name;  ///< "lr=0.01"
};

/// At the same step it is behind the reference, and even if it went on rising as steeply as the
/// upper end (95 %) of its slope over the later half of its points says, until the step at which
/// the reference ended, it would not reach the reference's best. Learning curves flatten, so that a
/// straight line is generous; one that starts with a plateau longer than `min_share` is misjudged.
[[nodiscard]] std::optional<std::string> will_not_catch_up(const std::vector<Point>& points,
                                                           std::size_t count,
                                                           const Reference& reference,
                                                           const StopRules& rules,
                                                           const Objective& objective);

/// The median rule: its best so far is worse than the median of the others' scores at the same
/// step. Silent before `warm_up` steps and with fewer than `startup` others that came so far.
struct MedianRule {
  std::size_t startup = 5;
  double warm_up = 0;
};
[[nodiscard]] std::optional<std::string> below_median(const std::vector<Point>& points,
                                                      std::size_t count,
                                                      const std::vector<const Curve*>& others,
                                                      const MedianRule& rule,
                                                      const Objective& objective);

}  // namespace stoker::tune
