#pragma once

#include <cstddef>
#include <string>

#include "memory/replay/timeline.h"

namespace stoker {

struct TimelineTextOptions {
  std::size_t columns = 72;
  std::size_t rows = 4;
  bool unicode = true;  ///< eighths of a block; else one of " .:-=+*#" a cell
};

/// The allocated bytes as a small chart from 0 up to the largest reserved, the phases marked below.
/// Each line is indented by two. Empty for an empty timeline.
[[nodiscard]] std::string timeline_text(const Timeline& timeline,
                                        const TimelineTextOptions& options = {});

}  // namespace stoker
