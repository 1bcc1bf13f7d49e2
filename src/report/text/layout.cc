#include "report/text/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "lower/loop/untrained.h"
#include "report/text/screen.h"
#include "report/text/table_fit.h"

namespace stoker::layout {

std::string number(double value) {
  const double magnitude = std::fabs(value);
  // Each border is where fewer digits behind the point still make three in all.
  if (magnitude >= 999.5) {
    const double step = std::pow(10.0, std::max(0.0, std::floor(std::log10(magnitude)) - 2));
    return with_commas(std::llround(std::llround(value / step) * step));
  }
  if (magnitude >= 99.95) return fmt::format("{:.0f}", value);
  if (magnitude >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

std::string two_digits(double value) {
  return value < 1 ? fmt::format("{:.2g}", value) : number(value);
}

std::string two_digits(const Figure& f) {
  return fmt::format("{} [{}-{}]", two_digits(f.value), two_digits(f.low), two_digits(f.high));
}

std::string energy(const Figure& kilowatt_hours) {
  constexpr double kSmall = 0.01, kWattHours = 1000;
  const bool small = kilowatt_hours.value < kSmall;
  const Figure f = small ? scaled(kilowatt_hours, kWattHours) : kilowatt_hours;
  return fmt::format("{} {} [{}-{}]", two_digits(f.value), small ? "Wh" : "kWh", two_digits(f.low),
                     two_digits(f.high));
}

std::string money(double value, std::string_view currency) {
  constexpr double kNoCents = 999.995, kFractions = 0.1;
  return std::string(currency) + (value >= kNoCents     ? with_commas(std::llround(value))
                                  : value >= kFractions ? fmt::format("{:.2f}", value)
                                                        : fmt::format("{:.2g}", value));
}

std::string_view limit_word(const LimiterFact& limiter) {
  switch (limiter.kind) {
    case Limiter::kGpuCompute:
      return "GPU";
    case Limiter::kGpuLaunch:
      return "launch";
    case Limiter::kCommunication:
      return "network";
    case Limiter::kInput:
      return "input";
    case Limiter::kCopy:
      return "copy";
    case Limiter::kHostOptimizer:
      return "optimizer";
  }
  return "";
}

std::string settings_line(const std::vector<std::string>& settings) {
  return labelled("Settings", settings);
}

std::string rate(const Figure& f) {
  return fmt::format("{} [{}-{}]", number(f.value), number(f.low), number(f.high));
}

std::string millis(const Figure& f) {
  return fmt::format("{} ms [{}-{}]", number(f.value), number(f.low), number(f.high));
}

std::string gib(const Figure& f) {
  const auto g = [](double bytes) { return bytes / static_cast<double>(kGiB.count()); };
  return fmt::format("{:.2f} GiB [{:.2f}-{:.2f}]", g(f.value), g(f.low), g(f.high));
}

std::string table(const std::vector<std::vector<std::string>>& cells,
                  const std::vector<std::size_t>& left, std::string_view indent,
                  const std::vector<std::size_t>& first_to_go) {
  FittedTable fit{cells, {}};
  for (auto& row : fit.rows) {
    for (std::string& cell : row) cell = printable(cell);
  }
  const std::size_t unlimited = static_cast<std::size_t>(-1) - indent.size();
  const std::size_t room =
      columns_within(unlimited) - std::min(columns_within(unlimited), indent.size());
  fit = fitted(fit.rows, left, room, first_to_go);
  std::vector<std::size_t> widths(fit.kept.size(), 0);
  std::size_t all = 0;
  for (const auto& row : fit.rows) {
    all = std::max(all, row.size());
    for (std::size_t i = 0; i < fit.kept.size(); ++i) {
      if (fit.kept[i] < row.size()) widths[i] = std::max(widths[i], row[fit.kept[i]].size());
    }
  }
  std::string text;
  for (const auto& row : fit.rows) {
    std::string line(indent);
    for (std::size_t i = 0; i < fit.kept.size(); ++i) {
      const std::size_t c = fit.kept[i];
      if (c >= row.size()) continue;
      const bool to_left = std::find(left.begin(), left.end(), c) != left.end();
      if (i > 0) line += "  ";
      line += to_left ? fmt::format("{:<{}}", row[c], widths[i])
                      : fmt::format("{:>{}}", row[c], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  if (const std::size_t gone = all - fit.kept.size(); gone > 0)
    text += fmt::format("{}({} column{} left out)\n", indent, gone, gone == 1 ? "" : "s");
  return text;
}

std::string left_out_counts(const std::vector<int>& counts, int nodes) {
  if (counts.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i > 0) list += i + 1 == counts.size() ? " and " : ", ";
    list += std::to_string(counts[i]);
  }
  const bool one = counts == std::vector{1};
  return fmt::format("  {} GPU{} left out: {} nodes cannot share {} evenly\n", list,
                     one ? " is" : "s are", nodes, one ? "it" : "them");
}

std::string labelled(std::string_view label, const std::vector<std::string>& items,
                     std::size_t width, std::size_t indent) {
  if (items.empty()) return {};
  width = columns_within(width);
  std::string text;
  std::string line = fmt::format("{:<{}}", label, indent);
  bool fresh = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = printable(items[i]) + (i + 1 < items.size() ? ";" : "");
    for (const std::string& word : split(item, ' ')) {
      if (!fresh && line.size() + 1 + word.size() > width) {
        text += line + "\n";
        line.assign(indent, ' ');
        fresh = true;
      }
      line += (fresh ? "" : " ") + word;
      fresh = false;
    }
  }
  return text + line + "\n";
}

std::string continued(const std::string& text) {
  constexpr std::size_t kWidth = 110, kBlockIndent = 10;
  return labelled("", {text}, kWidth, kBlockIndent);
}

std::string footer(const std::vector<std::string>& rests_on,
                   const std::vector<std::string>& assumed,
                   const std::vector<std::string>& excluded) {
  if (!screen().footer) return {};
  return labelled("Rests on", rests_on) + labelled("Assumed", assumed) +
         labelled("Excluded", excluded);
}

std::string not_trained(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.name == kNotTrained) text += labelled("NOT TRAINED:", {printable(d.advice)}, 110, 13);
  }
  return text;
}

std::string diagnostics(const Diagnostics& diagnostics, std::string_view but) {
  std::string text;
  for (const Diagnostic& d : diagnostics.all()) {
    if (d.severity != Severity::kWarning || d.name == but) continue;
    text += "warning: " + printable(d.advice) +
            (d.count > 1 ? fmt::format(" ({} times)", d.count) : "") + "\n";
  }
  return text;
}

}  // namespace stoker::layout
