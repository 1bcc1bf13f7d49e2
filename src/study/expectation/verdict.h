#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/expectation/correction.h"
#include "study/store/store.h"

namespace stoker::study {

/// How forecasts of one figure came out.
struct ForecastMatch {
  std::string figure;
  std::int64_t trials = 0;  ///< that are done and were forecast
  double ratio = 0;         ///< measured over forecast, the median
  double error = 0;         ///< how far off they are, relative, the median
  std::int64_t inside = 0;  ///< trials in their bands
  /// Trials that began when others had taught something, and how far off they are with that and
  /// without.
  std::int64_t corrected = 0, corrected_inside = 0;
  double corrected_error = 0, uncorrected_error = 0;
};

/// What forecasts were good for in a study.
struct ForecastVerdict {
  std::vector<ForecastMatch> matches;
  std::int64_t not_fitting = 0, dominated = 0;  ///< trials that were not run
  std::optional<Banded> saved_s{};              ///< the time that the dominated would have taken
  double spent_s = 0;                           ///< by those that ran
};
[[nodiscard]] ForecastVerdict verdict_of(const std::vector<TrialRow>& rows);

}  // namespace stoker::study
