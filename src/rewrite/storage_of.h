#pragma once

#include <cstdint>

#include "step/step.h"

namespace stoker {

/// Which of the step's storages a tensor lies in.
[[nodiscard]] inline std::uint32_t storage_of(const TensorRef& tensor) {
  return static_cast<std::uint32_t>(index(tensor.storage));
}

}  // namespace stoker
