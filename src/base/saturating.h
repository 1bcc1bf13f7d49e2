#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

/// Arithmetic on numbers of files, which may be anything: a result that 64 bits do not hold is the
/// nearest one that they do.
namespace stoker {

[[nodiscard]] constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

[[nodiscard]] constexpr std::int64_t saturating_difference(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

/// A fraction is cut off; what is no number is 0.
[[nodiscard]] inline std::int64_t saturating_whole(double value) {
  constexpr double kEnd = 0x1p63;
  if (std::isnan(value)) return 0;
  if (value >= kEnd) return std::numeric_limits<std::int64_t>::max();
  if (value < -kEnd) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

}  // namespace stoker
