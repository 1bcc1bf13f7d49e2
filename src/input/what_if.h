#pragma once

#include <optional>

#include "input/sample_cost.h"

namespace stoker {

/// The cost of a sample after every picture was resized once so that its short side is at most
/// `short_side` pixels. Bytes and stages that work on the whole picture scale with its pixels;
/// later stages stay. nullopt when that changes less than a tenth of the pixels. `like` gives
/// output shape and transport.
[[nodiscard]] std::optional<SampleCost> smaller_pictures(const Probe& probe, int short_side,
                                                         const SampleCost& like,
                                                         const LoaderProfile& profile);

}  // namespace stoker
