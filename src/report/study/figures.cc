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
  const std::string result = printable(text.substr(0, at_most));
  return text.size() > at_most ? result + "..." : result;
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
  if (name.ends_with("_bytes")) return human_bytes(Bytes(static_cast<std::int64_t>(*value)));
  if (name == "wall_s" || name == "cpu_s") return seconds_text(value);
  return figure(*value);
}

}  // namespace stoker
