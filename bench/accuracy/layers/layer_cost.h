#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "accuracy/layers/layer_coefficients.h"
#include "accuracy/layers/layer_network.h"
#include "base/figure.h"
#include "base/units.h"
#include "timing/gpu/kernel_cost.h"

namespace stoker::accuracy {

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

/// A network and what a call of it was measured to take.
struct MeasuredLayer {
  LayerNetwork network;
  Nanos time;
};

/// One-layer networks on one GPU. Pure: same network, same answer.
class LayerModel {
 public:
  LayerModel(const Gpu& gpu, const LayerKnowledge& knowledge);

  [[nodiscard]] LayerCost cost_of(const LayerNetwork& network) const;
  /// The same without the learned factor and the band.
  [[nodiscard]] LayerCost analytic_of(const LayerNetwork& network) const;

  /// What parts take at data-sheet rates with weight 1, in milliseconds: the columns of a fit.
  [[nodiscard]] std::array<double, kLayerParts> columns(const LayerNetwork& network) const;

  /// Sets two multiples by some rows of this very GPU and host: of the fixed time and of the rest,
  /// for the least mean error of the logarithm. With fewer than `kFewestRows` rows nothing changes.
  void calibrate(const std::vector<MeasuredLayer>& rows);
  static constexpr std::size_t kFewestRows = 5;

 private:
  /// Logarithm of how far the band reaches by what trees say of the network; 0 without them.
  [[nodiscard]] double width_of(const LayerNetwork& network, ForestInput input) const;

  CostModel rules_;  ///< efficiencies of 1, nothing that costs time by itself
  SessionCoefficients session_;
  std::shared_ptr<const std::vector<Forest>> all_forests_;  ///< keeps forests_ alive
  /// By LayerFamily; none: no factor or width is learned.
  std::array<std::vector<const Forest*>, kLayerFamilies> forests_;
  double fixed_multiple_ = 1, device_multiple_ = 1;
};

}  // namespace stoker::accuracy
