#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

/// Why an image, or another sample, could not be used.
enum class PictureFault : std::uint8_t {
  kNone,
  kUnreadable,
  kVanished,
  kEmpty,
  kNotPicture,
  kTruncated,
  kCorrupt,
  kTooManyPixels,
  kFileTooBig
};
inline constexpr std::size_t kPictureFaults = 9;
/// Stable counter name and advice for Diagnostics.
[[nodiscard]] std::string_view fault_name(PictureFault fault);
[[nodiscard]] std::string_view fault_advice(PictureFault fault);

/// JPEG's own limit of a side; nothing larger is an image to train on.
inline constexpr int kMaxPictureSide = 65'535;

}  // namespace stoker
