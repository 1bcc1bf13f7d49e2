#include "report/text/table_fit.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace stoker::layout {
namespace {

/// A column of words narrower than this cannot be read.
constexpr std::size_t kLeastWords = 18;
constexpr std::size_t kBetween = 2;

std::vector<std::size_t> widths_of(const Cells& rows, const std::vector<std::size_t>& kept) {
  std::vector<std::size_t> widths(kept.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] < row.size()) widths[i] = std::max(widths[i], row[kept[i]].size());
    }
  }
  return widths;
}

std::size_t total_of(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
         kBetween * (widths.empty() ? 0 : widths.size() - 1);
}

std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  lines.push_back(std::move(line));
  return lines;
}

/// The words of the last kept column in as many rows as they need.
Cells wrapped(const Cells& rows, std::size_t column, std::size_t width) {
  Cells out;
  for (const auto& row : rows) {
    if (column >= row.size()) {
      out.push_back(row);
      continue;
    }
    bool first = true;
    for (std::string& line : lines_of(row[column], width)) {
      std::vector<std::string> part = first ? row : std::vector<std::string>(row.size());
      part[column] = std::move(line);
      out.push_back(std::move(part));
      first = false;
    }
  }
  return out;
}

/// The position among `kept` of the next column to go.
std::size_t next_to_go(const std::vector<std::size_t>& kept,
                       const std::vector<std::size_t>& first_to_go) {
  for (const std::size_t column : first_to_go) {
    const auto found = std::find(kept.begin(), kept.end(), column);
    if (found != kept.end() && found != kept.begin())
      return static_cast<std::size_t>(found - kept.begin());
  }
  return kept.size() - 1;
}

}  // namespace

FittedTable fitted(const Cells& rows, const std::vector<std::size_t>& left, std::size_t columns,
                   const std::vector<std::size_t>& first_to_go) {
  FittedTable out{rows, {}};
  std::size_t most = 0;
  for (const auto& row : rows) most = std::max(most, row.size());
  out.kept.resize(most);
  std::iota(out.kept.begin(), out.kept.end(), std::size_t{0});
  while (out.kept.size() > 1) {
    const std::vector<std::size_t> widths = widths_of(out.rows, out.kept);
    const std::size_t total = total_of(widths);
    if (total <= columns) return out;
    const std::size_t last = out.kept.back();
    const bool words = std::find(left.begin(), left.end(), last) != left.end();
    const std::size_t others = total - widths.back();
    if (words && columns >= others + kLeastWords) {
      out.rows = wrapped(out.rows, last, columns - others);
      return out;
    }
    out.kept.erase(out.kept.begin() +
                   static_cast<std::ptrdiff_t>(next_to_go(out.kept, first_to_go)));
  }
  return out;
}

}  // namespace stoker::layout
