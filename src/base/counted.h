#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

/// "1 worker", "4 workers", "1,024 workers": a number and what it counts.
[[nodiscard]] std::string counted(std::int64_t number, std::string_view what);

}  // namespace stoker
