#pragma once

#include <string_view>

#include "base/result.h"
#include "device/machine.h"

namespace stoker {

/// Reads `--host cores=16,ram=64G,shm=8G`: keys `cores`, `ram` (or `memory`), `shm`, `disk`
/// (bytes/s read in sequence, a size as parse_bytes takes it), `iops`, `speed` (of a core, relative
/// to the probed machine). What is not given comes from `base` (normally this machine), except that
/// /dev/shm is half of a given `ram`, Linux's default; `assumption` lists both. Refuses unknown
/// keys, zero, negative and absurd values.
[[nodiscard]] Result<Host> parse_host(std::string_view text, const Host& base);

}  // namespace stoker
