#pragma once

#include "base/result.h"
#include "device/calibration_data.h"
#include "device/machine.h"
#include "timing/common/coefficients.h"

namespace stoker {

/// What a machine file's measurements change about the coefficients of its GPU: a scale and a
/// spread for each cost class, host and copy figures where they were measured. `before` are the
/// coefficients without them. Bands only narrow. Refuses operators that are unknown or contradict
/// physics, naming the row.
[[nodiscard]] Result<CoefficientPatch> calibrate(const Calibration& calibration, const Gpu& gpu,
                                                 const Coefficients& before);

}  // namespace stoker
