#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "accuracy/layers/layer_cost.h"
#include "timing/learned/forest.h"

namespace stoker::accuracy {

/// Names of what trees see of a one-layer network, in order.
[[nodiscard]] std::span<const std::string_view> layer_feature_names();

/// Which trees speak for a network.
[[nodiscard]] LayerFamily family_of(const LayerNetwork& network);

/// A network as trees see it: its sizes, and shares of its analytic time; nothing that names a GPU,
/// so that what one GPU taught serves another. `columns` are LayerModel's, `cost` the analytic one,
/// which is what the learned factor multiplies.
[[nodiscard]] ForestInput layer_input(const LayerNetwork& network, const LayerCost& cost,
                                      const std::array<double, kLayerParts>& columns);

/// Hash of the features of a few fixed networks on a fixed GPU with built-in weights: trees made
/// for other features are told by it.
[[nodiscard]] std::uint64_t layer_fingerprint();

}  // namespace stoker::accuracy
