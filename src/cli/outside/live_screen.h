#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace stoker::cli {

/// Columns and rows of a terminal; 80 by 24 where it does not tell.
struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};
[[nodiscard]] TerminalSize terminal_size(std::FILE* terminal);

/// Whether lines can be drawn over on this stream.
[[nodiscard]] bool is_terminal(std::FILE* stream);

/// Draws lines over those that it drew before.
class LiveScreen {
 public:
  explicit LiveScreen(std::FILE* terminal) : terminal_(terminal) {}
  void draw(const std::vector<std::string>& lines);

 private:
  std::FILE* terminal_;
  std::size_t drawn_ = 0, columns_ = 0;
};

}  // namespace stoker::cli
