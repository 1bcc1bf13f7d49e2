#include "cli/outside/live_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace stoker::cli {

TerminalSize terminal_size(std::FILE* terminal) {
  struct winsize size {};
  if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {size.ws_col, size.ws_row};
}

bool is_terminal(std::FILE* stream) {
  const char* const kind = std::getenv("TERM");
  return ::isatty(::fileno(stream)) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

void LiveScreen::draw(const std::vector<std::string>& lines) {
  const std::size_t columns = terminal_size(terminal_).columns;
  std::string out;
  // A terminal that became narrower has broken the old lines: nothing above them can be found, so
  // the screen is drawn anew.
  if (drawn_ > 0 && columns != columns_) out += "\x1b[2J\x1b[H";
  else if (drawn_ > 0) out += "\x1b[" + std::to_string(drawn_) + "A";
  for (const std::string& line : lines) out += "\r" + printable(line) + "\x1b[K\n";
  out += "\x1b[J";
  std::fputs(out.c_str(), terminal_);
  std::fflush(terminal_);
  drawn_ = lines.size();
  columns_ = columns;
}

}  // namespace stoker::cli
