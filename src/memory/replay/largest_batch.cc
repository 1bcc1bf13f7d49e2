#include "memory/replay/largest_batch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace stoker {
namespace {

class Search {
 public:
  Search(const LowerAt& lower_at, Bytes usable, const LargestBatchOptions& options)
      : lower_at_(lower_at), usable_(usable), options_(options) {}

  Result<LargestBatch> run() {
    const std::int64_t best = settle(bracket());
    if (error_) return tl::unexpected(*error_);
    LargestBatch answer;
    answer.batch = best;
    const bool described = options_.detail == LargestBatchDetail::kDescribed;
    if (described) answer.holes = holes_below(best);
    for (const auto& [batch, verdict] : seen_) {
      if (batch > best && !verdict && !answer.first_failing) answer.first_failing = batch;
    }
    if (described || best == 0) {
      TRY(describe(std::max<std::int64_t>(best, 1), answer));
    }
    answer.simulations = simulations_;
    answer.presumed = presumed_.contains(best) || presumed_.contains(best + 1);
    if (error_) return tl::unexpected(*error_);
    return answer;
  }

 private:
  /// A batch that fits (or 0) and a larger one that does not (or limit + 1).
  using Bracket = std::pair<std::int64_t, std::int64_t>;

  std::vector<std::int64_t> holes_below(std::int64_t best) {
    std::vector<std::int64_t> holes;
    for (std::int64_t b = best - 1; b >= std::max<std::int64_t>(1, best - options_.neighbours);
         --b) {
      if (!fits(b)) holes.push_back(b);
    }
    return holes;
  }

  bool fits(std::int64_t batch) {
    if (batch <= 0) return true;
    if (batch > options_.limit || error_) return false;
    const auto known = seen_.find(batch);
    if (known != seen_.end()) return known->second;
    const auto program = lower_at_(batch);
    if (!program) {
      // Sizes that fall with the batch, as what a queue keeps, end at some batch; so do numbers.
      if (batch > 1 && program.error().code == ErrorCode::kBadInput) return seen_[batch] = false;
      return error_ = program.error(), false;
    }
    ReplayOptions replay_options = constrained(*program);
    replay_options.detail = ReplayDetail::kVerdict;
    ++simulations_;
    const bool verdict = room(*program) && (surely_fits(*program, replay_options) ||
                                            runs_within(*program, replay_options, batch));
    seen_[batch] = verdict;
    return verdict;
  }

  bool runs_within(const Program& program, ReplayOptions options, std::int64_t batch) {
    const Bytes capacity = *options.capacity;
    const bool may_flush = options_.flush == CacheFlush::kAllowed;
    if (!may_flush) {
      options.capacity.reset();
      options.allocator.memory_fraction.reset();
    }
    const MemoryOutcome outcome = replay(program, options);
    if (outcome.presumed > 0) presumed_.insert(batch);
    return outcome.fits() && (may_flush || outcome.reserved_peak <= capacity);
  }

  /// Nothing but the context may be more than there is.
  bool room(const Program& program) const { return outside_bytes(program) <= usable_; }

  ReplayOptions constrained(const Program& program) const {
    ReplayOptions result = options_.replay;
    result.capacity = std::max(Bytes{0}, usable_ - outside_bytes(program));
    if (!result.total) result.total = usable_;
    return result;
  }

  Bracket bracket() {
    std::int64_t low = 0;
    std::int64_t high =
        std::clamp<std::int64_t>(options_.hint, 1, std::max<std::int64_t>(options_.limit, 1));
    // Doubling from 1; from a hint first in small strides, since it should be near.
    std::int64_t stride = options_.hint > 1 ? std::max<std::int64_t>(1, options_.hint / 16) : 1;
    if (fits(high)) {
      while (high <= options_.limit && fits(high)) {
        low = high;
        high += stride;
        stride *= 2;
        if (low < options_.limit) high = std::min(high, options_.limit);
      }
      return {low, high};
    }
    for (low = high - stride; low > 0 && !fits(low); low -= stride) {
      high = low;
      stride *= 2;
    }
    return {std::max<std::int64_t>(low, 0), high};
  }

  std::int64_t settle(Bracket bracket) {
    auto [low, high] = bracket;
    while (!error_) {
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
      }
      // The largest of the neighbours that fits, if any: the search goes on from there.
      std::int64_t island = 0;
      for (std::int64_t b = low + 1; b <= low + options_.neighbours; ++b) {
        if (fits(b)) island = b;
      }
      if (island == 0) return low;
      low = island;
      high = island + 1;
    }
    return low;
  }

  Status describe(std::int64_t batch, LargestBatch& answer) {
    const auto program = TRY(lower_at_(batch));
    const ReplayOptions replay_options = constrained(program);
    ++simulations_;
    answer.outcome = replay(program, replay_options);
    answer.only_by_flushing = answer.batch > 0 && answer.outcome.retries > 0;
    if (answer.batch > 0) return {};
    const Bytes needed = smallest_capacity(program, replay_options);
    Bytes missing = needed + outside_bytes(program) - usable_;
    if (const auto fraction = replay_options.allocator.memory_fraction) {
      // PyTorch counts the fraction of what the allocator reserves alone.
      const double allowed = *fraction * static_cast<double>(replay_options.total->count());
      missing = std::max(missing, needed - Bytes(static_cast<std::int64_t>(allowed)));
    }
    // At least one step, should a smaller capacity happen to work where this one does not.
    answer.missing = std::max(missing, kLargeRounding);
    return {};
  }

  const LowerAt& lower_at_;
  Bytes usable_;
  const LargestBatchOptions& options_;
  std::map<std::int64_t, bool> seen_;
  std::set<std::int64_t> presumed_;  ///< batches whose simulation left repetitions out unproven
  std::optional<Error> error_;
  int simulations_ = 0;
};

}  // namespace

Result<LargestBatch> find_largest_batch(const LowerAt& lower_at, Bytes usable,
                                        const LargestBatchOptions& options) {
  return Search(lower_at, usable, options).run();
}

}  // namespace stoker
