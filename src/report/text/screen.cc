#include "report/text/screen.h"

#include <algorithm>

namespace stoker::layout {
namespace {

Screen& the_screen() {
  static Screen screen;
  return screen;
}

}  // namespace

void set_screen(const Screen& screen) { the_screen() = screen; }

const Screen& screen() { return the_screen(); }

std::size_t columns_within(std::size_t wished) {
  return screen().columns == 0 ? wished : std::min(wished, screen().columns);
}

}  // namespace stoker::layout
