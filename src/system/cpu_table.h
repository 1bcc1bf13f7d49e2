#pragma once

#include "base/toml_table.h"
#include "device/machine.h"

/// Internal to src/machine: the [cpu] table of a machine file.
namespace stoker {

/// The processor as a device: `vendor` is kCpu. What cannot be is recorded in the table.
[[nodiscard]] Gpu read_cpu(TomlTable& table);

}  // namespace stoker
