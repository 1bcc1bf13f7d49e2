#pragma once

#include <string>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"
#include "diagnosis/timeline/job_timeline.h"

namespace stoker {

/// What a terminal shows of a watch at one moment.
struct WatchScreen {
  const JobTimeline* timeline = nullptr;
  std::string source;
  std::string verdict;     ///< empty: too early to say anything
  std::size_t width = 80;  ///< columns of the terminal
  std::size_t height = 24;
};

/// Lines of at most `width` columns, at most `height` of them, for a terminal that shows UTF-8.
[[nodiscard]] std::vector<std::string> screen_lines(const WatchScreen& screen);

/// Eight heights of blocks for values of 0 to `most`, the last `columns` of them; a value below 0
/// is not known and shows as a blank.
[[nodiscard]] std::string sparkline(const std::vector<double>& values, double most,
                                    std::size_t columns);

}  // namespace stoker
