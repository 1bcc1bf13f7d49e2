#include "cli/arguments/written_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace stoker::cli {
namespace {

/// Without blanks, in lower case.
std::string tight(std::string_view text) {
  std::string plain = lower_case(text);
  std::erase(plain, ' ');
  return plain;
}

struct Written {
  double number = 0;
  std::string digits, unit;
};

/// A number and what follows it; nullopt: the text does not begin with one.
std::optional<Written> number_and_unit(std::string_view text) {
  const std::string plain = tight(text);
  Written written;
  const char* end = plain.data() + plain.size();
  const auto [stop, error] = std::from_chars(plain.data(), end, written.number);
  if (error != std::errc()) return std::nullopt;
  written.digits.assign(plain.data(), stop);
  written.unit.assign(stop, end);
  return written;
}

void drop_end(std::string& text, std::string_view end) {
  if (text.size() > end.size() && text.ends_with(end)) text.resize(text.size() - end.size());
}

std::string plain_milliseconds(const std::string& text) {
  const auto written = number_and_unit(text);
  if (!written) return text;
  if (written->unit == "ms") return written->digits;
  if (written->unit == "s") return fmt::format("{}", written->number * 1e3);
  return text;
}

/// "1-8", "1 to 8" -> "1..8".
std::string plain_span(const std::string& text) {
  const auto first = number_and_unit(text);
  if (!first || first->digits.find_first_not_of("0123456789") != std::string::npos) return text;
  for (const std::string_view between : {"-", "to"}) {
    if (!first->unit.starts_with(between)) continue;
    const std::string last = first->unit.substr(between.size());
    const bool digits = !last.empty() && last.find_first_not_of("0123456789") == std::string::npos;
    if (digits) return first->digits + ".." + last;
  }
  return text;
}

std::string plain_side(const std::string& text) {
  const auto written = number_and_unit(text);
  if (!written) return text;
  const bool square = written->unit == "x" + written->digits;
  return square || written->unit == "px" ? written->digits : text;
}

}  // namespace

std::string plain_money(std::string_view text) {
  std::string plain = tight(text);
  for (const std::string_view sign : {"us$", "usd", "$"}) {
    if (plain.starts_with(sign)) plain.erase(0, sign.size());
  }
  for (const std::string_view span : {"/h", "/hr", "/hour", "perhour", "anhour"})
    drop_end(plain, span);
  for (const std::string_view sign : {"usd", "dollars", "$"}) drop_end(plain, sign);
  const auto written = number_and_unit(plain);
  return written && written->unit.empty() ? plain : std::string(text);
}

std::string plain_value(const SettingRow& setting, const std::string& text) {
  const bool number = setting.type == SettingType::kNumber || setting.type == SettingType::kWhole;
  if (number && setting.value == "MONEY") return plain_money(text);
  if (setting.name.ends_with("-ms")) return plain_milliseconds(text);
  if (setting.name == "gpus") return plain_span(text);
  return setting.name == "image-size" ? plain_side(text) : text;
}

std::string likely_number(std::string_view text) {
  std::string plain;
  for (const char c : tight(text)) {
    if (c != '_' && c != ',' && c != '\'') plain += c;
  }
  const auto written = number_and_unit(plain);
  if (!written || !(written->number > 0)) return {};
  // Lengths of sequences are counted in powers of two.
  constexpr double kLengths = 1024, kMost = 1e9;
  const double value = written->number * (written->unit == "k" ? kLengths : 1);
  const bool letters = std::all_of(written->unit.begin(), written->unit.end(),
                                   [](unsigned char c) { return std::isalpha(c) != 0; });
  if (!letters || value != std::floor(value) || value >= kMost) return {};
  const std::string number = fmt::format("{:.0f}", value);
  return number == text ? std::string() : number;
}

std::string likely_words(std::string_view text) {
  const std::string number = likely_number(text);
  return number.empty() ? std::string() : "; write " + number;
}

}  // namespace stoker::cli
