#pragma once

#include <cstddef>

namespace stoker::layout {

/// What text is laid out for. The command line decides it once, before a verb runs; without that
/// text is as for a file: whole tables, lines of at most 110 columns where they are wrapped.
struct Screen {
  std::size_t columns = 0;  ///< of the terminal that is written to; 0: none, as wide as need be
  bool footer = true;       ///< what an answer rests on, assumed and left out
};

void set_screen(const Screen& screen);
[[nodiscard]] const Screen& screen();

/// `wished`, or what the terminal has.
[[nodiscard]] std::size_t columns_within(std::size_t wished);

}  // namespace stoker::layout
