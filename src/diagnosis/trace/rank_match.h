#pragma once

#include <cstddef>
#include <vector>

#include "diagnosis/trace/rank_trace.h"

namespace stoker {

/// One collective and how each rank that has it went through it.
struct MatchedCollective {
  struct Member {
    std::size_t rank = 0;        ///< an index of the ranks given
    std::size_t collective = 0;  ///< RankTrace::collectives
  };
  std::vector<Member> members;  ///< two or more, by rank
  std::int64_t transfer = 0;    ///< the shortest of them: what the last one to arrive needed
};

struct RankMatch {
  std::vector<MatchedCollective> collectives;
  std::int64_t alone = 0;  ///< collectives of one rank for which no other has a counterpart
};

/// Which collectives of the ranks are one: those of a group by PyTorch's own count where the
/// traces tell it, else by their order within a ProfilerStep, without steps by their order; where
/// ranks have not the same number of them, by their times, which then must overlap.
[[nodiscard]] RankMatch match_collectives(const std::vector<RankTrace>& ranks);

}  // namespace stoker
