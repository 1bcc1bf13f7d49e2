#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

/// How a training loop brings its batch to the device.
enum class CopyWay : std::uint8_t {
  /// The next batch's, from page-locked memory, on a stream of its own, beside the step.
  kOverlapped,
  /// .to(device, non_blocking=True) from page-locked memory: one more operation of the compute
  /// stream, the host goes on.
  kNonBlocking,
  kBlocking,  ///< .to(device) from page-locked memory: in line, the host waits
  kPageable   ///< from other memory: in line, the host waits, whatever non_blocking says
};

[[nodiscard]] std::string_view name_of(CopyWay way);  ///< "non-blocking"

/// Whether the batch comes from page-locked memory.
[[nodiscard]] constexpr bool is_pinned(CopyWay way) { return way != CopyWay::kPageable; }

}  // namespace stoker
