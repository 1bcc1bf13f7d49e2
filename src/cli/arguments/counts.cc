#include "cli/arguments/counts.h"

#include <charconv>
#include <cmath>
#include <string>

namespace stoker::cli {
namespace {

/// 1 without a suffix; 0: there is no such suffix.
double multiple_of(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "k" || suffix == "K") return 1e3;
  if (suffix == "m" || suffix == "M") return 1e6;
  if (suffix == "g" || suffix == "G" || suffix == "b" || suffix == "B") return 1e9;
  return 0;
}

/// "1,281,167" or "1_281_167" without what parts thousands; as it is where it does not part them.
std::string without_commas(std::string_view text) {
  std::string plain;
  std::size_t digits = 0;
  bool first = true;
  for (const char c : text) {
    if (c != ',' && c != '_') {
      plain += c;
      ++digits;
      continue;
    }
    if (first ? digits == 0 || digits > 3 : digits != 3) return std::string(text);
    first = false;
    digits = 0;
  }
  return first || digits == 3 ? plain : std::string(text);
}

}  // namespace

std::optional<std::int64_t> parse_count(std::string_view text) {
  const std::string plain = without_commas(text);
  const char* const end = plain.data() + plain.size();
  std::int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(plain.data(), end, whole);
      error == std::errc() && stop == end)
    return whole;
  double number = 0;
  const auto [stop, error] = std::from_chars(plain.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const double value = number * multiple_of({stop, static_cast<std::size_t>(end - stop)});
  constexpr double kMost = 1LL << 53;  // beyond it a double is no longer every whole number
  const double nearest = std::round(value);
  if (!std::isfinite(value) || value == 0 || std::abs(value) > kMost ||
      std::abs(value - nearest) > 1e-6)
    return std::nullopt;
  return static_cast<std::int64_t>(nearest);
}

}  // namespace stoker::cli
