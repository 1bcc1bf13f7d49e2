#pragma once

#include <string>

#include "step/step.h"

namespace stoker {

/// "trains 3.41 M of 8.03 G parameters (0.042 %)"; empty where all are trained, or none is.
[[nodiscard]] std::string trained_words(const Step& step);

}  // namespace stoker
