#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

/// One data row: the text of each column by its heading, and the line it starts on (from 1).
struct CsvRow {
  int line = 0;
  std::map<std::string, std::string, std::less<>> cells;

  /// The cell under `column`; empty when the table has no such column.
  [[nodiscard]] std::string_view operator[](std::string_view column) const;
};

/// Parses comma-separated text with one heading line: quoted cells may hold commas, doubled quotes
/// and line breaks; lines that start with '#' and blank lines are skipped; CRLF is accepted.
/// Refuses an unclosed quote, text after a closing quote, and rows with more or fewer cells than
/// headings. `name` is the file that errors point at ("gpus.csv:12").
[[nodiscard]] Result<std::vector<CsvRow>> parse_csv(std::string_view text, const std::string& name);

/// The finite number above 0 that is all of the cell.
[[nodiscard]] Result<double> positive_number(std::string_view cell);

}  // namespace stoker
