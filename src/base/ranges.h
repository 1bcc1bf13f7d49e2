#pragma once

#include <string>

#include "base/result.h"

namespace stoker {

/// What a figure of a machine may be: bounds wide enough for any real one for years, narrow enough
/// that a slip of the unit (Hz for MHz, bytes for gigabytes) does not pass.
struct Range {
  double least = 0;
  double most = 0;
  const char* unit = "";
  bool zero_allowed = false;  ///< 0 = there is no such unit, or unknown
};

namespace range {
inline constexpr Range kCount{1, 1024, "GPUs"};
inline constexpr Range kNodes{1, 65536, "nodes"};
inline constexpr Range kMultiprocessors{1, 4096, "multiprocessors"};
inline constexpr Range kCoresPerMultiprocessor{1, 1024, "cores"};
inline constexpr Range kCpuCores{1, 4096, "cores"};
inline constexpr Range kSimdBits{64, 4096, "bits", true};
inline constexpr Range kClockMhz{50, 10'000, "MHz"};
inline constexpr Range kTeraflops{0.001, 1e6, "TFLOP/s"};
inline constexpr Range kUnitTeraflops{0.001, 1e6, "TFLOP/s", true};
inline constexpr Range kBandwidthGbs{0.1, 1e6, "GB/s"};
inline constexpr Range kLinkGbs{0.01, 1e6, "GB/s", true};
inline constexpr Range kWatts{1, 1e5, "W", true};
inline constexpr Range kPrice{0, 1e5, "per hour", true};
inline constexpr Range kHostCores{0.01, 65536, "cores"};
inline constexpr Range kCoreSpeed{0.01, 100, "times the probed core"};
inline constexpr Range kDiskMbs{0.01, 1e7, "MB/s", true};
inline constexpr Range kDiskIops{0.1, 1e10, "reads/s", true};
/// Sizes, in bytes: 16 MiB to 1 PiB; caches from 1 KiB; parts of a memory from 0.
inline constexpr Range kMemoryBytes{16.0 * 1024 * 1024, 0x1p50, "bytes"};
inline constexpr Range kCacheBytes{1024, 0x1p40, "bytes", true};
inline constexpr Range kPartBytes{0, 0x1p50, "bytes", true};
/// Without a page of it no worker of a loader could hand over a batch.
inline constexpr Range kSharedMemoryBytes{4096, 0x1p50, "bytes"};
}  // namespace range

/// The value, or why it cannot be: "1e+12 MHz cannot be; 50 to 10000 MHz is possible".
[[nodiscard]] Result<double> within(double value, const Range& range);

/// Shortest text that reads back as the same number: "0.1", "1e+12".
[[nodiscard]] std::string shortest(double value);

}  // namespace stoker
