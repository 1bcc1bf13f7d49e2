#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::tune {

/// A learning-rate range test: the loss while the rate rises from step to step, of one run.
struct RangePoint {
  double rate = 0, loss = 0;
};
using RangeRun = std::vector<RangePoint>;

struct RangeOptions {
  double smoothing = 0.9;   ///< weight of what was before, of an average with its bias taken out
  double diverged = 4;      ///< a smoothed loss so many times above the best ends a run...
  std::size_t fewest = 10;  ///< points that are needed
  /// ... and the smoothed loss has to fall by so many standard errors, of the place that it falls
  /// from and of its least, to be said to fall. Runs of noise alone do so in 1 % of cases at 100
  /// points, in 5 % at 300.
  double clear = 4;
};

/// What a range test says of the rate.
struct RangeResult {
  /// From where the smoothed loss falls steepest, by the logarithm of the rate, to a tenth of where
  /// it is least; nothing: no suggestion, and `reason` says why.
  std::optional<double> low{}, high{};
  double steepest = 0, least = 0;  ///< rates
  std::size_t runs = 0;            ///< that showed it
  double spread = 1;               ///< largest over smallest steepest rate of the runs
  std::string reason{};
};

/// Joins several runs (seeds) by the geometric means of what each says; runs that say nothing are
/// left out, and more than half of them leave no suggestion.
[[nodiscard]] RangeResult range_test(const std::vector<RangeRun>& runs,
                                     const RangeOptions& options = {});

/// Runs of a file: lines "run,rate,loss".
[[nodiscard]] Result<std::vector<RangeRun>> read_range_runs(const std::string& path);

}  // namespace stoker::tune
