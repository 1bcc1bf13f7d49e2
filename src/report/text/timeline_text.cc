#include "report/text/timeline_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"

namespace stoker {
namespace {

/// Levels that one cell can show, empty first.
constexpr int kLevels = 8;
constexpr std::array<const char*, kLevels + 1> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, kLevels + 1> kAscii{" ", ".", ".", ":", "-", "=", "+", "*", "#"};

/// The points of column c of n, at least one.
struct Span {
  std::size_t first, last;
};
Span points_of(std::size_t column, std::size_t columns, std::size_t points) {
  const std::size_t first = column * points / columns;
  const std::size_t last = std::max(first + 1, (column + 1) * points / columns);
  return {first, std::min(last, points)};
}

std::vector<double> column_heights(const Timeline& timeline, std::size_t columns, double top) {
  std::vector<double> heights;
  for (std::size_t c = 0; c < columns; ++c) {
    const Span span = points_of(c, columns, timeline.points.size());
    Bytes most;
    for (std::size_t i = span.first; i < span.last; ++i)
      most = std::max(most, timeline.points[i].allocated);
    heights.push_back(static_cast<double>(most.count()) / top);
  }
  return heights;
}

/// "|forward        |loss|backward" below the columns; a name that has no room is cut.
std::string phase_line(const Timeline& timeline, std::size_t columns) {
  std::string line(columns, ' ');
  const auto& marks = timeline.marks;
  const auto column_of = [&](std::size_t point) {
    return std::min(columns, point * columns / timeline.points.size());
  };
  for (std::size_t m = 0; m < marks.size(); ++m) {
    const std::size_t from = column_of(marks[m].first);
    const std::size_t to = m + 1 < marks.size() ? column_of(marks[m + 1].first) : columns;
    if (from >= to) continue;  // too short to be seen
    const std::string label = ("|" + marks[m].name).substr(0, to - from);
    line.replace(from, label.size(), label);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string timeline_text(const Timeline& timeline, const TimelineTextOptions& options) {
  if (timeline.points.empty()) return {};
  Bytes most;
  for (const TimelinePoint& point : timeline.points) most = std::max(most, point.reserved);
  const auto top = static_cast<double>(std::max<std::int64_t>(1, most.count()));
  const auto heights = column_heights(timeline, options.columns, top);
  const auto& cells = options.unicode ? kBlocks : kAscii;
  std::string text;
  for (std::size_t row = options.rows; row-- > 0;) {
    text += "  ";
    for (const double height : heights) {
      const double eighths =
          (height * static_cast<double>(options.rows) - static_cast<double>(row)) * kLevels;
      text += cells[static_cast<std::size_t>(std::clamp(std::lround(eighths), 0L, 0L + kLevels))];
    }
    if (row + 1 == options.rows) text += "  " + human_bytes(most) + " reserved";
    if (row == 0 && options.rows > 1) text += "  0";
    while (text.back() == ' ') text.pop_back();
    text += "\n";
  }
  return text + "  " + phase_line(timeline, options.columns) + "\n";
}

}  // namespace stoker
