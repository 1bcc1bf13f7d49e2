#pragma once

#include <string>
#include <vector>

#include "device/calibration_data.h"
#include "evidence/training/training_validation.h"

namespace stoker {

/// Step errors of runs that the correction had not seen.
struct HeldOutErrors {
  double median = 0, worst = 0;  ///< relative, without sign
};

/// What a validation teaches the machine file: how many times as long as forecast each class of
/// operators takes on it, by threads.
struct Learning {
  std::vector<MeasuredFigure> figures;  ///< to be folded in; products with what was learned before
  std::size_t held_out = 0;             ///< forecasts that the two figures below are over
  HeldOutErrors before, after;
  bool by_model = false;  ///< whole models were held out, else single runs
  bool helps = false;     ///< else nothing is to be folded in
  std::string why_not;    ///< then
};

/// Each run (with several models: each model) is held out in turn, the factors are learned from the
/// others with the same threads, and the held-out forecast is made again with them. Only what makes
/// held-out runs better, and the worst of them no worse, is worth keeping. `known`: the machine's
/// calibration, which the forecasts rest on. On a GPU one factor is learned for the whole step.
[[nodiscard]] Learning learn_from(const std::vector<ComparedRun>& runs, const Calibration& known,
                                  bool cpu);

}  // namespace stoker
