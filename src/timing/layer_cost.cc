#include "timing/layer_cost.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// Efficiencies of 1 and no fixed costs: what is left is the data sheet and the rules.
Coefficients data_sheet_only() {
  Coefficients c;
  for (ClassCoefficients& entry : c.classes) entry.compute = entry.memory = 1;
  c.kernel.floor_us = 0;
  c.kernel.launch_us = 0;
  c.kernel.l2_speedup = 1;
  return c;
}

}  // namespace

LayerModel::LayerModel(const Gpu& gpu, const Coefficients& coefficients)
    : rules_(gpu, data_sheet_only()), session_(coefficients.session) {}

std::array<double, kLayerParts> LayerModel::columns(const LayerNetwork& network) const {
  std::array<double, kLayerParts> columns{};
  for (const LayerKernel& entry : layer_kernels(network)) {
    columns[static_cast<std::size_t>(entry.part)] +=
        milliseconds(rules_.cost_of(entry.kernel).time);
  }
  return columns;
}

LayerCost LayerModel::cost_of(const LayerNetwork& network) const {
  LayerCost cost;
  const auto optimizer = static_cast<std::size_t>(network.optimizer);
  cost.fixed =
      Nanos(1e3 * (network.kind == LayerKind::kDense ? session_.dense_us
                                                     : session_.convolution_us)[optimizer]);
  cost.analytic = cost.fixed;
  const auto at_data_sheet = columns(network);
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    cost.parts[i] = Nanos(1e6 * at_data_sheet[i] * session_.part[i]);
    cost.analytic += cost.parts[i];
  }
  cost.total = cost.analytic;
  const double fixed = cost.fixed / cost.analytic;
  const double spread = std::hypot(fixed * session_.floor_spread, (1 - fixed) * session_.spread);
  cost.band = {spread / (1 + spread), spread};
  return cost;
}

}  // namespace stoker
