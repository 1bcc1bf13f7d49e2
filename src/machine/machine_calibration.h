#pragma once

#include "base/result.h"
#include "machine/calibration_data.h"
#include "machine/toml_table.h"

/// Internal to src/machine: the [calibration] table of a machine file.
namespace stoker {

/// Refuses keys and figures that cannot be; whether the operators exist and obey physics is the cost
/// model's to say (timing/calibration.h).
[[nodiscard]] Result<Calibration> read_calibration(TomlTable& table);

}  // namespace stoker
