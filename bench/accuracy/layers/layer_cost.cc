#include "accuracy/layers/layer_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "accuracy/layers/layer_features.h"

namespace stoker::accuracy {
namespace {

/// Efficiencies of 1 and no fixed costs: what is left is the data sheet and the rules.
Coefficients data_sheet_only() {
  Coefficients c;
  for (ClassCoefficients& entry : c.classes) entry.compute = entry.memory = 1;
  c.kernel.floor = 0_us;
  c.kernel.launch = 0_us;
  c.kernel.l2_speedup = 1;
  return c;
}

}  // namespace

LayerModel::LayerModel(const Gpu& gpu, const LayerKnowledge& knowledge)
    : rules_(gpu, data_sheet_only()), session_(knowledge.session), all_forests_(knowledge.forests) {
  if (all_forests_ == nullptr) return;
  for (std::size_t family = 0; family < forests_.size(); ++family)
    forests_[family] = forests_of(*all_forests_, family, gpu.chip);
}

std::array<double, kLayerParts> LayerModel::columns(const LayerNetwork& network) const {
  std::array<double, kLayerParts> columns{};
  for (const LayerKernel& entry : layer_kernels(network)) {
    columns[static_cast<std::size_t>(entry.part)] +=
        milliseconds(rules_.cost_of(entry.kernel).time);
  }
  return columns;
}

LayerCost LayerModel::analytic_of(const LayerNetwork& network) const {
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
  return cost;
}

double LayerModel::width_of(const LayerNetwork& network, ForestInput input) const {
  const LayerFamily family =
      network.kind == LayerKind::kDense ? LayerFamily::kDenseWidth : LayerFamily::kConvolutionWidth;
  input.plain = Seconds(1);
  const auto width = time_by(forests_[static_cast<std::size_t>(family)], input);
  return width ? width->count() : 0;
}

LayerCost LayerModel::cost_of(const LayerNetwork& network) const {
  LayerCost cost = analytic_of(network);
  const auto& forests = forests_[static_cast<std::size_t>(family_of(network))];
  double width = 0;  // logarithm of how far the band reaches, on GPUs and hosts with rows
  if (!forests.empty()) {
    const ForestInput input = layer_input(network, cost, columns(network));
    const Seconds learned = *time_by(forests, input);
    if (learned > Seconds(0)) {
      cost.total = as_nanos(learned);
      cost.factor = cost.total / cost.analytic;
    }
    width = width_of(network, input);
  }
  cost.total = cost.factor *
               (fixed_multiple_ * cost.fixed + device_multiple_ * (cost.analytic - cost.fixed));
  const double fixed = cost.fixed / cost.analytic;
  const double floor = network.kind == LayerKind::kDense ? session_.dense_floor_spread
                                                         : session_.convolution_floor_spread;
  const double spread = std::hypot(std::expm1(width), fixed * floor, (1 - fixed) * session_.spread);
  cost.band = {spread / (1 + spread), spread};
  return cost;
}

void LayerModel::calibrate(const std::vector<MeasuredLayer>& rows) {
  // Host and device of one era differ by no more; finer steps are below the noise of such rows.
  constexpr double kLargest = 4, kStep = 1.02;
  if (rows.size() < kFewestRows) return;
  std::vector<LayerCost> costs;
  for (const MeasuredLayer& row : rows) costs.push_back(cost_of(row.network));
  double best = HUGE_VAL, best_fixed = 1, best_device = 1;
  for (double fixed = 1 / kLargest; fixed <= kLargest; fixed *= kStep) {
    for (double device = 1 / kLargest; device <= kLargest; device *= kStep) {
      double loss = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const LayerCost& c = costs[i];
        const Nanos total = c.factor * (fixed * c.fixed + device * (c.analytic - c.fixed));
        loss += std::abs(std::log(total / rows[i].time));
      }
      if (loss < best) best = loss, best_fixed = fixed, best_device = device;
    }
  }
  fixed_multiple_ *= best_fixed;
  device_multiple_ *= best_device;
}

}  // namespace stoker::accuracy
