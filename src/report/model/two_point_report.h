#pragma once

#include <array>
#include <string>
#include <vector>

#include "forecast/memory/two_point.h"

namespace stoker {

/// The answer of the two-reading method and what it is set beside.
struct TwoPointAnswer {
  std::array<MemoryReading, 2> readings;
  std::array<bool, 2> simulated{};
  TwoPointEstimate estimate;
  std::string gpu_name;
  Bytes gpu_memory;
  /// Batches by simulation under the GPU's capacity; 0: not simulated, or not even one fits.
  std::int64_t simulated_largest = 0, simulated_safe = 0;
  /// Why the two differ, one phrase each.
  std::vector<std::string> reasons;
};

[[nodiscard]] std::string two_point_text(const TwoPointAnswer& answer);

}  // namespace stoker
