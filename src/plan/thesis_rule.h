#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

/// What the rule of the thesis on storage bottlenecks of CNNs takes
/// (docs/models/recommendations.md).
struct ThesisLimits {
  Bytes dram;                      ///< of the host
  Bytes sample;                    ///< I: bytes of one sample in memory
  std::int64_t largest_batch = 0;  ///< B_m: what a GPU's memory holds
  int gpus = 1;                    ///< N
  int most_workers = 1;            ///< W at most: the host's hardware threads
};

/// Times of a batch of `batch` samples.
struct ThesisTimes {
  std::function<Nanos(std::int64_t batch)> load;  ///< t_d: one worker alone makes it
  std::function<Nanos(std::int64_t batch)> step;  ///< t_g: a GPU trains on it
};

struct ThesisAnswer {
  std::int64_t batch = 0;
  int workers = 0;   ///< W, of the whole host
  Bytes memory;      ///< W * B * I
  Nanos load, step;  ///< t_d and t_g at that batch
  /// Which limit holds the batch: "DRAM", "GPU memory", "the loader".
  std::string limit;
};

/// The largest batch B, and for it the fewest workers W, with W*B*I < DRAM, t_d <= (t_g/N)*W and
/// B <= B_m. kAnswerIsNo when no W lets the loader keep up.
[[nodiscard]] Result<ThesisAnswer> thesis_rule(const ThesisLimits& limits,
                                               const ThesisTimes& times);

}  // namespace stoker
