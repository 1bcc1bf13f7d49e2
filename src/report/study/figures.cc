#include "report/study/figures.h"

#include <fmt/core.h>

#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

std::string figure(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude != 0 && (magnitude < 1e-3 || magnitude >= 1e7)) return fmt::format("{:.3g}", value);
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  if (magnitude >= 1000) return with_commas(std::llround(value));
  return fmt::format("{:.4g}", value);
}

}  // namespace

std::string printable(std::string_view text, std::size_t at_most) {
  if (text.size() <= at_most) return printable(text);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t end = at_most;
  while (end > 0 && continues(text[end])) --end;  // a character of UTF-8 is kept whole
  return printable(text.substr(0, end)) + "...";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos && !text.starts_with('#')) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string seconds_text(const std::optional<double>& seconds) {
  return seconds ? human_time(Nanos(*seconds * 1e9)) : "-";
}

std::string named_figure(const std::string& name, const std::optional<double>& value) {
  if (!value) return "-";
  constexpr double kMostBytes = 0x1p60;  // a command may report any number by such a name
  if (name.ends_with("_bytes") && std::fabs(*value) < kMostBytes)
    return human_bytes(Bytes(static_cast<std::int64_t>(*value)));
  if (name == "wall_s" || name == "cpu_s") return seconds_text(value);
  return figure(*value);
}

}  // namespace stoker
