#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "plan/plan.h"

namespace stoker {

/// What an objective judges a forecast by. Cost and energy of the run, if one was asked for; else
/// of the epoch where the data set's size is known, else of one sample; 0 when the forecast lacks
/// what it takes (a price, a TDP).
[[nodiscard]] Figure objective_figure(Objective objective, const Forecast& forecast);

/// Throughput is to be large; cost, time and energy are to be small.
[[nodiscard]] bool higher_is_better(Objective objective);

/// Where a forecast stands among others, counted from 1, as far as the bands tell: `first` if every
/// overlap were decided for it, `last` if each went against it.
struct Standing {
  std::size_t index = 0;  ///< into the list that was ranked
  std::size_t first = 0, last = 0;
};

/// Best first by value; a standing of more than one place says that bands overlap. Forecasts that
/// do not fit their GPU come last in their order, with `first` = 0.
[[nodiscard]] std::vector<Standing> rank(Objective objective,
                                         const std::vector<const Forecast*>& forecasts);

/// Refuses an objective that some GPU has no figure for: cost where only some have a price, energy
/// without a TDP.
[[nodiscard]] Status check_objective(Objective objective,
                                     const std::vector<const Forecast*>& forecasts);

/// One GPU beside others, in the settings that were asked for.
struct Contender {
  Forecast forecast;
  BatchLimits limits;
  std::string rows;  ///< which measured rows the step's time rests on: "its own", "data sheet only"
};

}  // namespace stoker
