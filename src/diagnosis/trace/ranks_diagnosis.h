#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnosis/trace/rank_trace.h"

namespace stoker {

/// One rank's time; shares are of its own window and add up to one with `other_communication`.
struct RankShares {
  std::int64_t rank = 0;
  std::string file;
  double seconds = 0, step_s = 0;  ///< step_s 0: not known
  std::int64_t steps = 0;
  double compute = 0, copies = 0, idle = 0;
  double waiting = 0;              ///< in collectives for the slowest rank, nothing computed beside
  double transfer = 0;             ///< in collectives behind that
  double other_communication = 0;  ///< without a counterpart on another rank
  double waiting_all_s = 0, transfer_all_s = 0;  ///< a step, beside computing too
  std::int64_t collectives = 0;                  ///< matched
  std::int64_t last_at = 0;                      ///< of them, those that it came to last
  /// Time a step that it came to collectives later than the median of the other ranks.
  double behind_s = 0;
  double blamed = 0;  ///< of all ranks' waiting, the share in collectives that it came to last
  std::vector<JobFinding> findings;  ///< its own
};

/// One kind of collective.
struct CollectiveTimes {
  std::string kind;
  std::int64_t count = 0;
  double transfer_s = 0, waiting_s = 0;      ///< of each, the mean over ranks
  std::int64_t often_last = 0, of_them = 0;  ///< the rank that comes last most often
};

/// The rank that the others wait for, and what it does meanwhile beyond what they do.
struct Straggler {
  std::int64_t rank = 0;
  double behind_s = 0;  ///< a step
  struct Cause {
    std::size_t work = 0;  ///< of RankTrace's collectives
    double more_s = 0;     ///< a step, beyond the median of the others
  };
  std::vector<Cause> causes;  ///< largest first
};

/// What the traces of a job's ranks tell together.
struct RanksDiagnosis {
  std::vector<RankShares> ranks;
  std::optional<std::int64_t> world_size;
  std::vector<std::int64_t> missing;
  bool gpus = true;      ///< false: no GPU worked, collectives are Gloo's
  double step_s = 0;     ///< median over ranks; 0: not known
  bool per_step = true;  ///< false: no steps; what is "a step" is the whole trace
  double compute = 0, copies = 0, idle = 0, waiting = 0, transfer = 0;  ///< means over ranks
  std::int64_t matched = 0, alone = 0, point_to_point = 0;              ///< collectives
  std::vector<CollectiveTimes> kinds;  ///< by waiting and transfer together, largest first
  std::optional<Straggler> straggler;
  std::vector<JobFinding> findings;
  std::string verdict;
  std::vector<std::string> notes;
};

/// `traces` has at least one; what was said of files that could not be read stands in `notes`.
[[nodiscard]] RanksDiagnosis diagnose_ranks(std::vector<RankTrace> traces,
                                            std::vector<std::string> notes = {});

}  // namespace stoker
