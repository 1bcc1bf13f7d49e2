#pragma once

#include "base/toml_table.h"
#include "device/cpu.h"

/// The [cpu] table of a machine file; internal to src/device.
namespace stoker {

/// What cannot be is recorded in the table.
[[nodiscard]] Cpu read_cpu(TomlTable& table);

}  // namespace stoker
