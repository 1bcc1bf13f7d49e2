#pragma once

#include "step/step.h"

namespace stoker {

/// Weights of a model and how many of them a step trains. Four-bit weights, two of which lie in a
/// byte, count as the weights that they are.
struct TrainedShare {
  double total = 0, trained = 0;

  [[nodiscard]] double share() const { return total > 0 ? trained / total : 1; }
};

[[nodiscard]] TrainedShare trained_share(const Step& step);

}  // namespace stoker
