#pragma once

#include <string>

#include "evidence/calibration/calibrated_machine.h"

namespace stoker {

/// What stands around a calibration's result.
struct CalibrationSaid {
  std::string file;         ///< that was written; empty: none
  std::string version;      ///< of stoker
  bool rows_given = false;  ///< nothing was measured now: a rows file was read
};

/// What the device sustains, against its data sheet and the calibration before; spread, load, what
/// next.
[[nodiscard]] std::string calibration_text(const CalibratedMachine& machine,
                                           const CalibrationRuns& runs,
                                           const CalibrationSaid& said);
[[nodiscard]] std::string calibration_json(const CalibratedMachine& machine,
                                           const CalibrationRuns& runs,
                                           const CalibrationSaid& said);

}  // namespace stoker
