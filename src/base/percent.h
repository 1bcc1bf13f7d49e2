#pragma once

#include <string>

namespace stoker {

inline constexpr double kPerCent = 100;

/// A share in whole per cent: 0.423 is "42 %".
[[nodiscard]] std::string percent(double share);
/// A share in per cent with one decimal: 0.423 is "42.3 %".
[[nodiscard]] std::string exact_percent(double share);
/// A share in per cent, below 10 % with one decimal: 0.0423 is "4.2 %".
[[nodiscard]] std::string fine_percent(double share);
/// A change with its sign and one decimal: 0.0423 is "+4.2 %".
[[nodiscard]] std::string signed_percent(double change);

}  // namespace stoker
