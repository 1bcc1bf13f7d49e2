#pragma once

#include <string>

#include "step/step.h"

namespace stoker {

/// The diagnostic under which untrained parameters are told; a report shows it beside the verdict.
inline constexpr const char* kNotTrained = "not_trained";

/// Which parameters require a gradient and get none in this training step, by module: "18 of 20
/// parameters that require a gradient get none (over 99 % of the weights): stem, blocks". Empty
/// where all get one, and for steps whose optimizer frees gradients within the backward.
[[nodiscard]] std::string untrained_words(const Step& step);

}  // namespace stoker
