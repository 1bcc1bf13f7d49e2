#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace stoker {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string formatted(const char* format, double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, number);
  return buffer;
}

/// Bytes of the character at the beginning of `text`; 0: it is no UTF-8.
std::size_t character_length(std::string_view text, char32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80             ? 1
                             : (byte(0) & 0xE0) == 0xC0 ? 2
                             : (byte(0) & 0xF0) == 0xE0 ? 3
                             : (byte(0) & 0xF8) == 0xF0 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  code = length == 1 ? byte(0) : byte(0) & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;  // of UTF-16: Python's pickles hold them
  return code < kLeast[length] || code > 0x10FFFF || surrogate ? 0 : length;
}

/// Control characters (C0, delete, C1) and those that turn the direction of writing (Unicode
/// Standard Annex #9).
bool steers(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E ||
         code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x2028 || code == 0x2029;
}

std::string cleaned(std::string_view text, std::string_view kept) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    char32_t code = 0;
    const std::size_t length = character_length(text, code);
    const bool shown = length > 0 && (!steers(code) || kept.find(text[0]) != kept.npos);
    if (shown) clean += text.substr(0, length);
    else clean += '?';
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return clean;
}

}  // namespace

std::string printable(std::string_view text) { return cleaned(text, {}); }
std::string escaped(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  while (!json.empty()) {
    char32_t code = 0;
    const std::size_t length = character_length(json, code);
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(code));
    if (length > 0 && code >= 0x7F && steers(code)) text += buffer;
    else text += json.substr(0, std::max<std::size_t>(1, length));
    json.remove_prefix(std::max<std::size_t>(1, length));
  }
  return text;
}

std::string printable_lines(std::string_view text) { return cleaned(text, "\n\t"); }

bool has_part(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string simplified(std::string_view name) {
  std::string out = lower_case(name);
  std::erase_if(out, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return out;
}

std::string nearest_name(std::string_view typed, std::span<const std::string> names) {
  const std::string wanted = simplified(typed);
  std::string best;
  // A suggestion that shares less than about half of its letters helps nobody.
  std::size_t best_distance = std::max<std::size_t>(2, wanted.size() / 2) + 1;
  constexpr std::size_t kShort = 3;
  for (const std::string& name : names) {
    const std::string candidate = simplified(name);
    std::size_t distance = edit_distance(wanted, candidate);
    if (!wanted.empty() && candidate.starts_with(wanted))
      distance = std::min<std::size_t>(distance, wanted.size() > kShort ? 0 : 1);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string suggestion(std::string_view typed, std::span<const std::string> names) {
  const std::string near = nearest_name(typed, names);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

Result<Bytes> parse_bytes(std::string_view text) {
  const std::string given(text);
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::kBadInput,
                "\"" + given + "\" " + why + "; write a size like 64G, 512M or 8589934592");
  };
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return refuse("is not a size");
  if (number < 0) return refuse("is negative");
  std::string unit = simplified(std::string_view(end, text.data() + text.size() - end));
  if (unit.ends_with("ib")) unit.erase(unit.size() - 2);
  else if (unit.size() > 1 && unit.ends_with("b")) unit.pop_back();
  constexpr std::string_view kUnits = "bkmgtp";
  int power = 0;
  if (!unit.empty()) {
    const std::size_t at = unit.size() == 1 ? kUnits.find(unit[0]) : std::string_view::npos;
    if (at == std::string_view::npos) return refuse("has an unknown unit");
    power = static_cast<int>(at);
  }
  const double bytes = number * std::pow(1024.0, power);
  if (bytes > 0x1p60) return refuse("is absurdly large");
  return Bytes(static_cast<std::int64_t>(bytes));
}

std::string human_bytes(Bytes bytes) {
  constexpr double kStep = 1024;
  // What one decimal rounds to the whole next unit is written in that unit.
  constexpr double kMost = kStep - 0.05;
  const double b = static_cast<double>(bytes.count());
  if (b < kStep) return formatted("%.0f B", b);
  if (b / kStep < kMost) return formatted("%.1f KiB", b / kStep);
  if (b / (kStep * kStep) < kMost) return formatted("%.1f MiB", b / (kStep * kStep));
  if (b / (kStep * kStep * kStep) < kMost)
    return formatted("%.1f GiB", b / (kStep * kStep * kStep));
  return formatted("%.2f TiB", b / (kStep * kStep * kStep * kStep));
}

std::string human_time(Nanos time) {
  const double s = seconds(time);
  // Each border is where the text before it would round up to the unit behind it.
  if (s < 999.5e-6) return formatted("%.0f us", s * 1e6);
  if (s < 0.09995) return formatted("%.1f ms", s * 1e3);
  if (s < 0.9995) return formatted("%.0f ms", s * 1e3);
  if (s < 9.95) return formatted("%.1f s", s);
  if (s < 119.5) return formatted("%.0f s", s);
  const auto whole = static_cast<std::int64_t>(std::llround(s));
  char buffer[64];
  if (whole < 3600) {
    std::snprintf(buffer, sizeof buffer, "%ld min %02ld s", static_cast<long>(whole / 60),
                  static_cast<long>(whole % 60));
  } else if (whole < 48 * 3600) {
    std::snprintf(buffer, sizeof buffer, "%ld h %02ld min", static_cast<long>(whole / 3600),
                  static_cast<long>(whole % 3600 / 60));
  } else {
    std::snprintf(buffer, sizeof buffer, "%.1f days", s / 86400);
  }
  return buffer;
}

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  if (number < 0) digits.erase(0, 1);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return number < 0 ? "-" + digits : digits;
}

std::uint64_t fnv1a(std::string_view text) {
  constexpr std::uint64_t kOffset = 14695981039346656037ULL;
  constexpr std::uint64_t kPrime = 1099511628211ULL;
  std::uint64_t hash = kOffset;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace stoker
