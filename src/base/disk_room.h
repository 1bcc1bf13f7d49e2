#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include "base/units.h"

namespace stoker {

/// What the disk of this folder has left for this user; nothing: it does not say.
[[nodiscard]] inline std::optional<Bytes> room_on_disk(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info disk = std::filesystem::space(folder, error);
  if (error) return std::nullopt;
  constexpr std::uintmax_t kMost = std::numeric_limits<std::int64_t>::max();
  return Bytes(static_cast<std::int64_t>(std::min(disk.available, kMost)));
}

}  // namespace stoker
