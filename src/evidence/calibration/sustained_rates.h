#pragma once

#include <vector>

#include "device/machine.h"
#include "evidence/calibration/calibrated_machine.h"

/// Internal to src/evidence.
namespace stoker {

/// The figure of a GPU's data sheet that a rate of its arithmetic or of its memory stands beside.
[[nodiscard]] double& sheet_figure(Gpu& gpu, RateKind kind);
[[nodiscard]] double sheet_figure(const Gpu& gpu, RateKind kind);

/// FLOP/s that clock and vector units of a measured CPU allow `cores` of its cores; 0: not known.
[[nodiscard]] double sheet_peak(const MeasuredDevice& device, int cores);

/// The best that the rows show of matrix products by precision and of memory, by threads. `sheet`:
/// the device by its data sheet; null: not known.
[[nodiscard]] std::vector<SustainedRate> sustained_rates(const CalibrationRuns& runs,
                                                         const Gpu* sheet);

}  // namespace stoker
