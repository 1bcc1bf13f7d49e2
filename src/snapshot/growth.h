#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "snapshot/snapshot.h"

namespace stoker {

/// A line of the user's code whose blocks pile up: some of every cycle of the trace stay.
struct GrowingHolder {
  std::string where;
  Bytes bytes;              ///< that stay, of all cycles but the first
  std::int64_t blocks = 0;  ///< likewise
  std::int64_t cycles = 0;  ///< of which blocks stay
  std::int64_t of_cycles = 0;
};

/// Memory that rises and falls once a step goes through cycles; a leak leaves something of each.
/// Looks at the trace of `device` up to event `end` (-1: all of it); largest first. Empty where
/// there are fewer than five cycles, since one step's own tensors look alike.
[[nodiscard]] std::vector<GrowingHolder> growing_holders(const Snapshot& snapshot,
                                                         std::size_t device, std::int64_t end);

}  // namespace stoker
