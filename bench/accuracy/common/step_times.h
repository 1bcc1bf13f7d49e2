#pragma once

#include "accuracy/common/bench.h"
#include "base/result.h"
#include "device/machine.h"
#include "program/job.h"
#include "timing/common/step_time.h"
#include "timing/step/coefficient_file.h"

/// Step time by the forecast's own road.
namespace stoker::accuracy {

/// By these coefficients; nullptr: by those that ship.
[[nodiscard]] Result<StepTime> time_with(const Bench& bench, const Step& step, const Job& job,
                                         const Machine& machine, const CoefficientFile* timing);

/// By coefficients that have not seen what `unseen` says; refused where no fold left the GPU out.
[[nodiscard]] Result<StepTime> time_of(const Bench& bench, const Step& step, const Job& job,
                                       const Machine& machine, Unseen unseen = Unseen::kNothing);

}  // namespace stoker::accuracy
