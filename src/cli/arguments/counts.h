#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::cli {

/// "50000", "50k", "1.28M", "2G", "1e6", "1,281,167", "1_281_167" -> the whole number that it
/// stands for, in decimal multiples, as data sets are counted; nullopt: it stands for none.
[[nodiscard]] std::optional<std::int64_t> parse_count(std::string_view text);

}  // namespace stoker::cli
