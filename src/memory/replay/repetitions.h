#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "memory/replay/replay.h"

namespace stoker {

/// Whether two executions of the same instructions took the same segments and requested as much.
[[nodiscard]] bool keeps_segments(const IterationMemory& before, const IterationMemory& after);

/// Repetitions of the same micro-batches, and how they will go on: blocks change places among
/// themselves, mostly in a cycle, until none changes any more.
class Repetitions {
 public:
  /// Takes what one more did. Returns the length of the cycle in which all others will go on; 0
  /// while that is not known.
  std::size_t add(const IterationMemory& now);
  /// What those of the cycle did that add() returned.
  [[nodiscard]] std::span<const IterationMemory> last_cycle() const;

 private:
  static constexpr std::size_t kLongestCycle = 128;

  std::vector<IterationMemory> done_;
  /// Repetitions in a row like those a cycle before, by the length of the cycle.
  std::array<std::size_t, kLongestCycle + 1> alike_{};
  std::size_t settled_ = 0;  ///< in a row that kept segments and requests
  std::size_t cycle_ = 0;
};

}  // namespace stoker
