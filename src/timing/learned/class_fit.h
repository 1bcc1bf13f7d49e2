#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "timing/common/coefficients.h"

namespace stoker {

/// A measured time beside the predicted one, of a kernel of one cost class or of a sum of several.
struct ClassRow {
  CostClass cost_class = CostClass::kUncosted;
  double log_ratio = 0;  ///< measured over predicted, launches not counted
  double variance = 0;   ///< of that logarithm, from timing alone
  /// Further classes that the time is made of, with their shares of it.
  std::vector<std::pair<CostClass, double>> others{};
};

/// One operator timed alone, and what the rules say of it beyond its launch.
struct TimedKernel {
  CostClass cost_class = CostClass::kUncosted;
  Micros measured;    ///< with its launch
  Micros predicted;   ///< without
  double spread = 0;  ///< relative standard deviation of the timing
};

/// The part of the launch that all measured times contain: of an empty kernel's time where that was
/// measured (0: it was not), else what the shortest rows leave for it.
[[nodiscard]] Micros launch_gap(Micros launch_floor, const std::vector<TimedKernel>& rows);

/// The row beyond the launch; nothing when it is mostly launch.
[[nodiscard]] std::optional<ClassRow> class_row(const TimedKernel& timed, Micros gap);

/// Variance of the logarithm of a time, from its spread; no timing is perfect.
[[nodiscard]] double timing_variance(double spread);

/// Scales and spreads of all cost classes that the rows support, on top of `before`: classes with
/// rows by their own, others as far as they share a limit with those. Bands only narrow. Refuses
/// factors that no GPU of one name differs by.
[[nodiscard]] Result<CoefficientPatch> fit_classes(const std::vector<ClassRow>& rows,
                                                   const Coefficients& before);

}  // namespace stoker
