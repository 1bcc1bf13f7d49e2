#pragma once

#include <algorithm>
#include <cstdint>

#include "base/saturating.h"

namespace stoker {

inline constexpr double kNanosASecond = 1e9;

[[nodiscard]] inline double at_seconds(std::int64_t ns) {
  return static_cast<double>(ns) / kNanosASecond;
}

/// How far a counter went on; counters of a recording may be anything.
[[nodiscard]] inline double grown(std::int64_t before, std::int64_t after) {
  return static_cast<double>(saturating_difference(std::max(before, after), before));
}
[[nodiscard]] inline double grown_seconds(std::int64_t before_ns, std::int64_t after_ns) {
  return grown(before_ns, after_ns) / kNanosASecond;
}

}  // namespace stoker
