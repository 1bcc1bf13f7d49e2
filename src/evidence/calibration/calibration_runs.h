#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "device/calibration_data.h"
#include "evidence/calibration/measured_device.h"

namespace stoker {

/// Who else used the machine while it was measured.
struct MeasuredLoad {
  double foreign_share = 0;  ///< of the cores' time, by other processes
  double steal_share = 0;    ///< by the hypervisor
  int others_on_gpu = 0;     ///< processes
  bool clocks_changed = false;
  bool disturbed = false;  ///< by the measuring's own rule
  std::string why;
};

/// What `python -m stoker calibrate-runs` wrote (docs/guide/calibrating.md).
struct CalibrationRuns {
  std::map<std::string, std::string> provenance;  ///< date, torch, driver ...
  MeasuredDevice device;
  MeasuredLoad load;
  /// Figures that this stoker knows, and all operators; `disturbed` as the load says.
  Calibration calibration;
  bool complete = false;  ///< everything that was planned came to be measured
  Diagnostics data;       ///< figures of a newer measuring, which were left out
};

/// `where` names the file in errors. Kinds and sizes of operators are the cost model's to judge
/// (timing/measured_operator.h).
[[nodiscard]] Result<CalibrationRuns> parse_calibration_runs(std::string_view text,
                                                             const std::string& where);
[[nodiscard]] Result<CalibrationRuns> read_calibration_runs(const std::filesystem::path& path);

}  // namespace stoker
