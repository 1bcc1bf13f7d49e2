#include "plan/thesis_rule.h"

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

/// Largest B with W*B*I strictly below the DRAM.
std::int64_t within_memory(const ThesisLimits& limits, int workers) {
  const std::int64_t each =
      std::int64_t{workers} * std::max<std::int64_t>(1, limits.sample.count());
  return (limits.dram.count() - 1) / each;
}

bool keeps_up(const ThesisLimits& limits, const ThesisTimes& times, int workers,
              std::int64_t batch) {
  return times.load(batch) <=
         times.step(batch) / static_cast<double>(limits.gpus) * static_cast<double>(workers);
}

/// Largest batch up to `most` with which the loader keeps up; 0: none. A larger batch shares the
/// step's fixed costs among more samples, so whoever keeps up with it keeps up with smaller ones.
std::int64_t largest_kept_up(const ThesisLimits& limits, const ThesisTimes& times, int workers,
                             std::int64_t most) {
  if (keeps_up(limits, times, workers, most)) return most;
  std::int64_t good = 0, bad = most;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (keeps_up(limits, times, workers, middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

Result<ThesisAnswer> thesis_rule(const ThesisLimits& limits, const ThesisTimes& times) {
  ThesisAnswer best;
  bool kept_up = false;
  for (int workers = 1; workers <= limits.most_workers; ++workers) {
    const std::int64_t memory = within_memory(limits, workers);
    const std::int64_t most = std::min(memory, limits.largest_batch);
    if (most < 1) break;  // more workers need more
    const std::int64_t batch = largest_kept_up(limits, times, workers, most);
    if (batch < 1) continue;
    kept_up = true;
    if (batch <= best.batch) continue;
    best = {batch,
            workers,
            limits.sample * (batch * workers),
            times.load(batch),
            times.step(batch),
            batch < most                    ? "the loader"
            : memory < limits.largest_batch ? "DRAM"
                                            : "GPU memory"};
  }
  if (best.batch > 0) return best;
  if (!kept_up && within_memory(limits, 1) >= 1 && limits.largest_batch >= 1) {
    return fail(ErrorCode::kAnswerIsNo,
                "no number of workers up to " + std::to_string(limits.most_workers) +
                    " fulfils t_d <= (t_g/N) W: the loader cannot keep up, for which the rule has "
                    "no answer");
  }
  return fail(ErrorCode::kAnswerIsNo,
              "not even one sample a batch fulfils W B I < DRAM and B <= B_m");
}

}  // namespace stoker
