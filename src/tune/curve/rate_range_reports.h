#pragma once

#include "base/result.h"
#include "study/trial/trial_files.h"
#include "tune/curve/rate_range.h"

namespace stoker::tune {

/// The learning rates and losses that a trial reported together: stoker.report(lr=..., loss=...).
[[nodiscard]] RangeRun range_reports(const study::TrialFiles& files);

}  // namespace stoker::tune
