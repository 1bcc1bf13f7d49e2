#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stoker {

/// One logarithm of measured over predicted time.
struct LogRatio {
  std::size_t part = 0;  ///< what it tells of, dense from 0: a cost class
  double value = 0;
  double variance = 0;  ///< of the measurement alone
  /// Other parts that the time is made of, and their shares of it; `part` has what is left of 1. A
  /// single operator has none, a whole step has many.
  std::vector<std::pair<std::size_t, double>> others{};
};

/// How much devices differ from their forecast before anything was measured on them: standard
/// deviations of logarithms. `within` is of single shapes around their part, `freedom` how many
/// rows that guess is worth.
struct ShrinkagePriors {
  double device = 0.12, group = 0.10, part = 0.10, within = 0.12, freedom = 6;
};

/// What is known of one part after the rows: its mean logarithm and how far that may be off.
struct PartEstimate {
  double mean = 0;
  double variance = 0;  ///< of the mean
  double within = 0;    ///< standard deviation of single shapes around it
  std::size_t rows = 0;
};

struct ShrinkageFit {
  std::vector<PartEstimate> parts;   ///< by part
  std::vector<PartEstimate> groups;  ///< what a part of the group without rows gets
  PartEstimate device;               ///< what a part of a group without rows gets
};

/// value = device + group + part + noise, by shares where a row has several parts; each normal with
/// its prior: the posterior by least squares, with rows that lie far off weighted down (Huber). Few
/// or noisy rows stay near zero, the prior. `group_of`: the group of each part, dense from 0; what
/// parts share (arithmetic in one unit, memory).
[[nodiscard]] ShrinkageFit fit_shrinkage(const std::vector<LogRatio>& rows,
                                         const std::vector<std::size_t>& group_of,
                                         std::size_t groups, const ShrinkagePriors& priors);

}  // namespace stoker
