#include "memory/replay/repetitions.h"

#include <algorithm>

namespace stoker {
namespace {

/// Repetitions in a row like those a cycle before, after which all will be; a whole cycle at least.
constexpr std::size_t kSurelyAlike = 16;
/// Repetitions in a row that change no segment after which the rest is taken to change none,
/// although blocks still change places without a cycle: a judgement, since thousands take seconds.
/// The answer says so (MemoryOutcome::presumed).
constexpr std::size_t kSettled = 256;

bool same(const IterationMemory& before, const IterationMemory& after) {
  return keeps_segments(before, after) && before.allocated_peak == after.allocated_peak &&
         before.allocated_end == after.allocated_end && before.fresh == after.fresh;
}

}  // namespace

bool keeps_segments(const IterationMemory& before, const IterationMemory& after) {
  return before.reserved_peak == after.reserved_peak && before.reserved_end == after.reserved_end &&
         before.requested_peak == after.requested_peak &&
         before.requested_end == after.requested_end && before.retries == after.retries;
}

/// Places say all; without them what was done has to repeat itself for long.
Repetitions::Course Repetitions::add(const IterationMemory& now,
                                     std::optional<std::uint64_t> places) {
  const bool settled =
      !done_.empty() && keeps_segments(done_.back(), now) && done_.back().fresh == now.fresh;
  settled_ = settled ? settled_ + 1 : 0;
  done_.push_back(now);
  Course course;
  if (!places) {
    course.cycle = cycle_of_what_they_did();
  } else if (const auto [known, is_new] = seen_.try_emplace(*places, done_.size()); !is_new) {
    course = {done_.size() - known->second, true};
  }
  if (course.cycle == 0 && settled_ >= kSettled) course.cycle = 1;
  cycle_ = course.cycle;
  return course;
}

std::size_t Repetitions::cycle_of_what_they_did() {
  for (std::size_t cycle = 1; cycle <= kLongestCycle; ++cycle) {
    const bool alike = done_.size() > cycle && same(done_[done_.size() - 1 - cycle], done_.back());
    alike_[cycle] = alike ? alike_[cycle] + 1 : 0;
    if (alike_[cycle] >= std::max(kSurelyAlike, cycle)) return cycle;
  }
  return 0;
}

std::span<const IterationMemory> Repetitions::last_cycle() const {
  return std::span(done_).last(cycle_);
}

}  // namespace stoker
