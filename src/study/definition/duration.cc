#include "study/definition/duration.h"

#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "base/saturating.h"
#include "base/text.h"
#include "system/system_files.h"

namespace stoker::study {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
/// A hundred years: what is longer is none that anybody waits for.
constexpr double kLongestTime = 36525 * kDay;

std::optional<double> seconds_of(std::string_view unit) {
  if (unit.empty() || unit == "s" || unit == "sec") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "m" || unit == "min") return kMinute;
  if (unit == "h") return kHour;
  if (unit == "d") return kDay;
  return std::nullopt;
}

std::optional<double> by_clock(std::string_view text) {
  double total = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto days = whole_number(text.substr(0, dash));
    if (!days) return std::nullopt;
    total = static_cast<double>(*days) * kDay;
    text.remove_prefix(dash + 1);
  }
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  double unit = parts.size() == 3 ? kHour : kMinute;
  for (const std::string& part : parts) {
    const auto number = decimal_number(part);
    if (!number || *number < 0) return std::nullopt;
    total += *number * unit;
    unit /= 60;
  }
  return total;
}

std::optional<double> by_units(std::string_view text) {
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    std::size_t digits = 0;
    while (digits < text.size() &&
           (std::isdigit(static_cast<unsigned char>(text[digits])) != 0 || text[digits] == '.'))
      ++digits;
    std::size_t end = digits;
    while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])) != 0) ++end;
    const auto number = decimal_number(text.substr(0, digits));
    const auto unit = seconds_of(text.substr(digits, end - digits));
    if (digits == 0 || !number || !unit) return std::nullopt;
    total += *number * *unit;
    any = true;
    text = trimmed(text.substr(end));
  }
  return any ? std::optional(total) : std::nullopt;
}

}  // namespace

std::optional<double> parse_seconds(std::string_view text) {
  text = trimmed(text);
  const auto seconds = text.find(':') != std::string_view::npos ? by_clock(text) : by_units(text);
  return seconds && *seconds <= kLongestTime ? seconds : std::nullopt;
}

std::string clock_text(double seconds) {
  auto left = saturating_whole(std::ceil(seconds));
  const std::int64_t days = left / 86400;
  left %= 86400;
  char text[64];
  std::snprintf(text, sizeof text, "%d:%02d:%02d", static_cast<int>(left / 3600),
                static_cast<int>(left % 3600 / 60), static_cast<int>(left % 60));
  return days > 0 ? std::to_string(days) + "-" + text : text;
}

}  // namespace stoker::study
