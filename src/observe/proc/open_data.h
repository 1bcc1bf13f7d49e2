#pragma once

#include <cstdint>
#include <string>

namespace stoker {

/// Files of data that a process has open to read, and what of them lies in memory.
struct OpenData {
  std::int64_t files = 0, bytes = 0, cached = 0;
};

/// Asks the kernel (cachestat(2), else mincore(2)) for each such file of "/proc/PID", up to `most`
/// of them. Opens them to ask, and reads nothing. Small files, and those that are opened and closed
/// between two looks, are not seen.
[[nodiscard]] OpenData open_data(const std::string& folder, int most);

}  // namespace stoker
