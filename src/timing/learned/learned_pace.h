#pragma once

#include <array>

#include "device/calibration_data.h"
#include "program/program.h"
#include "timing/common/step_time.h"

namespace stoker {

/// What training runs taught of a machine (the figures *_pace of its calibration): measured over
/// forecast time.
struct LearnedPace {
  std::array<double, kKernelClasses> classes{};  ///< by KernelClass
  double host = 1;                               ///< PyTorch and Python around operators
  double step = 1;                               ///< of a GPU: everything
  bool any = false;                              ///< false: nothing was learned
};

/// For so many threads; where these have none, those that hold for any number (threads 0). Null:
/// nothing was measured.
[[nodiscard]] LearnedPace learned_pace(const Calibration* calibration, int threads);

/// Makes operators of a CPU, which run one after another, so many times as long. The band's
/// relative width stays: a learned pace corrects the middle, it does not know the rest better.
void apply_pace(const LearnedPace& pace, const Program& program, StepTime& time);

}  // namespace stoker
