#pragma once

#include <cstdint>
#include <string_view>

namespace stoker {

/// What a kernel's time goes to.
enum class Bound : std::uint8_t { kCompute, kMemory, kLatency };
[[nodiscard]] std::string_view name_of(Bound bound);

}  // namespace stoker
