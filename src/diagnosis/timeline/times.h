#pragma once

#include <cstdint>

namespace stoker {

inline constexpr double kNanosASecond = 1e9;

[[nodiscard]] inline double at_seconds(std::int64_t ns) {
  return static_cast<double>(ns) / kNanosASecond;
}

}  // namespace stoker
