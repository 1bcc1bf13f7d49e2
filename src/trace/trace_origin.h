#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stoker {

/// Which process of a job wrote a trace, by its `distributedInfo`.
struct TraceOrigin {
  std::optional<std::int64_t> rank, world_size;
  std::string backend;  ///< "nccl", "gloo"; empty: not told
};

/// Looked for in the text, not in its tree: it may stand before the events or behind them, and be
/// whole where they are damaged.
[[nodiscard]] TraceOrigin origin_of(std::string_view content);

/// The rank that a file's name tells: "rank3.json", "rank-0", "worker12_step_7.json", "trace_r4".
[[nodiscard]] std::optional<std::int64_t> rank_in_name(std::string_view file);

}  // namespace stoker
