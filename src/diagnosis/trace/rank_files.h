#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/trace/rank_trace.h"

namespace stoker {

/// The ranks of one job, each once and with its number, and what was said of the files.
struct RankSet {
  std::vector<RankTrace> ranks;  ///< by their number
  std::optional<std::int64_t> world_size;
  std::vector<std::int64_t> missing;
  std::vector<std::string> notes;
};

/// Numbers come from the traces, else from the files' names, else from their order. A file that is
/// there twice counts once; of a rank's several profiles one is taken, the same on all ranks.
[[nodiscard]] RankSet rank_set(std::vector<RankTrace> traces);

/// "0-3, 7"
[[nodiscard]] std::string number_list(const std::vector<std::int64_t>& numbers);

}  // namespace stoker
