#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::json {

/// A text that is JSON but for what careless writers leave in it.
struct Repaired {
  std::string text;
  std::int64_t values = 0;   ///< inf, NaN and their like where a value stands: null
  std::int64_t strings = 0;  ///< escapes that JSON has not, control characters and bytes that are
                             ///< no UTF-8 within strings: kept as they can be
  [[nodiscard]] std::int64_t count() const { return values + strings; }
};

/// Makes words of other languages where a value stands (inf, -Infinity, NaN, nan, None) null, True
/// and False true and false, and strings valid. What is damaged otherwise stays so.
[[nodiscard]] Repaired repaired(std::string_view text);

}  // namespace stoker::json
