#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// Internal to src/report: tables on narrow terminals.
namespace stoker::layout {

using Cells = std::vector<std::vector<std::string>>;

/// A table that was made to fit: words of its last column go on in rows of their own, then whole
/// columns go.
struct FittedTable {
  Cells rows;
  std::vector<std::size_t> kept;  ///< columns of the table as it was
};

/// `columns`: room, two blanks between any two cells counted. `left`: columns of text, of which the
/// last may be wrapped. `first_to_go`: the order in which columns are given up; then it is the
/// rightmost, never the first.
[[nodiscard]] FittedTable fitted(const Cells& rows, const std::vector<std::size_t>& left,
                                 std::size_t columns, const std::vector<std::size_t>& first_to_go);

}  // namespace stoker::layout
