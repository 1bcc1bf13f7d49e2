#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/figure.h"
#include "base/units.h"
#include "timing/kernel_cost.h"
#include "timing/layer_network.h"

namespace stoker {

/// What one call of a one-layer network takes on one GPU.
struct LayerCost {
  Nanos total;  ///< wall time of the call
  Nanos fixed;  ///< of it: host, launches, waiting for the result
  /// Device time by part before the learned factor; with `fixed` they add up to `analytic`.
  std::array<Nanos, kLayerParts> parts{};
  Nanos analytic;
  double factor = 1;  ///< learned: total = analytic x factor
  Band band;          ///< 90 %, of total
};

/// One-layer networks on one GPU. Pure: same network, same answer.
class LayerModel {
 public:
  LayerModel(const Gpu& gpu, const Coefficients& coefficients);

  [[nodiscard]] LayerCost cost_of(const LayerNetwork& network) const;

  /// What parts take at data-sheet rates with weight 1, in milliseconds: the columns of a fit.
  [[nodiscard]] std::array<double, kLayerParts> columns(const LayerNetwork& network) const;

 private:
  CostModel rules_;  ///< efficiencies of 1, nothing that costs time by itself
  SessionCoefficients session_;
};

}  // namespace stoker
