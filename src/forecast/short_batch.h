#pragma once

#include <cstdint>

#include "forecast/forecast.h"

namespace stoker {

/// Samples of the batch that ends an epoch of one GPU, where it is a smaller one; 0: none is.
[[nodiscard]] std::int64_t short_batch(const Scenario& scenario);

}  // namespace stoker
