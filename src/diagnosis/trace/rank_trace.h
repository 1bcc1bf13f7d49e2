#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/trace/gpu_time.h"

namespace stoker {

/// What a rank did before a collective: computing, copying, then the causes of idling.
inline constexpr std::size_t kRankWork = 2 + kIdleCauses;
/// "computes", "copies", "the loop waits for data".
[[nodiscard]] std::string_view words_of_rank_work(std::size_t work);
[[nodiscard]] std::string_view name_of_rank_work(std::size_t work);

/// One collective as one rank went through it.
struct RankCollective {
  std::uint32_t key = 0;       ///< RankTrace::keys
  std::int64_t sequence = -1;  ///< within its group, as PyTorch counts; -1: not told
  std::int64_t step = -1;      ///< N of ProfilerStep#N
  std::int64_t elements = -1;
  TimeSpan time;
  std::vector<TimeSpan> alone;  ///< of it, with nothing computed beside
  /// What the rank did since its collective before, in ns.
  std::array<std::int64_t, kRankWork> before{};
};

/// What is kept of one rank's trace: no more than its collectives and its diagnosis.
struct RankTrace {
  std::string file;
  std::optional<std::int64_t> rank, world_size;
  std::uint64_t content = 0;  ///< a hash: two files of one content are one
  TimeSpan window;
  TraceDiagnosis diagnosis;
  /// Kinds of collectives: group, kind and stream, the same on all ranks.
  std::vector<std::string> keys;
  std::vector<RankCollective> collectives;  ///< by their beginning, within the window
  std::int64_t point_to_point = 0;          ///< sends and receives, which no other rank shares
};

/// The kind of collective that a key is of: "allreduce".
[[nodiscard]] std::string kind_of_key(const std::string& key);

[[nodiscard]] RankTrace rank_trace(const TraceTimeline& timeline, DiagnosedTrace trace);

}  // namespace stoker
