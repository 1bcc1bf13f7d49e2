#pragma once

#include <cstdint>
#include <string>

#include "step/step.h"

namespace stoker {

/// "just now", "3 minutes ago", "2 days ago".
[[nodiscard]] std::string ago(std::int64_t seconds);

/// "the model as captured by PyTorch 2.13.0, torchvision 0.29.1, 3 minutes ago": the software that
/// an answer rests on, and how old the capture is. `now`: seconds since 1970.
[[nodiscard]] std::string capture_words(const Provenance& provenance, std::int64_t now);

}  // namespace stoker
