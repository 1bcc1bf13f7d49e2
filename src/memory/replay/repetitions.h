#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/replay/replay.h"

namespace stoker {

/// Whether two executions of the same instructions took the same segments and requested as much.
[[nodiscard]] bool keeps_segments(const IterationMemory& before, const IterationMemory& after);

/// Repetitions of the same micro-batches, and how they will go on: blocks change places among
/// themselves, mostly in a cycle, until none changes any more.
class Repetitions {
 public:
  /// How all that follow will go on.
  struct Course {
    std::size_t cycle = 0;  ///< its length; 0 while it is not known
    bool proven = false;    ///< by where everything lies, not by what the last ones did
  };

  /// Takes what one more did, and a fingerprint of where everything lies behind it and of the calls
  /// to the device so far: an allocator that decides by nothing else repeats what followed an equal
  /// one. Absent: it decides by more.
  Course add(const IterationMemory& now, std::optional<std::uint64_t> places = std::nullopt);
  /// What those of the cycle did that add() returned.
  [[nodiscard]] std::span<const IterationMemory> last_cycle() const;

 private:
  static constexpr std::size_t kLongestCycle = 128;

  [[nodiscard]] std::size_t cycle_of_what_they_did();

  std::vector<IterationMemory> done_;
  std::unordered_map<std::uint64_t, std::size_t> seen_;  ///< places, and how many were done then
  /// Repetitions in a row like those a cycle before, by the length of the cycle.
  std::array<std::size_t, kLongestCycle + 1> alike_{};
  std::size_t settled_ = 0;  ///< in a row that kept segments and requests
  std::size_t cycle_ = 0;
};

}  // namespace stoker
