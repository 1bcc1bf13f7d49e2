#pragma once

#include "base/result.h"
#include "base/toml_table.h"
#include "device/calibration_data.h"

/// The [calibration] table of a machine file; internal to src/device.
namespace stoker {

/// Refuses keys and figures that cannot be; whether the operators exist and obey physics is the
/// cost model's to say (timing/learned/calibration.h).
[[nodiscard]] Result<Calibration> read_calibration(TomlTable& table);

}  // namespace stoker
