#pragma once

#include <cstdint>

namespace stoker {

/// A count as a real number.
[[nodiscard]] inline double real(std::int64_t n) { return static_cast<double>(n); }

}  // namespace stoker
