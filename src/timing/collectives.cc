#include "timing/collectives.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {
namespace {

struct NodeFabric {
  double alpha_seconds, bandwidth, spread;
  std::string basis;
};

/// The fits of one fabric at the counts around `ranks`: interpolated in log2(ranks), held constant
/// outside.
const FabricFit* nearest(const std::vector<FabricFit>& fits, const std::string& fabric, int ranks,
                         bool below) {
  const FabricFit* best = nullptr;
  for (const FabricFit& fit : fits) {
    if (simplified(fit.fabric) != simplified(fabric)) continue;
    if (below ? fit.ranks > ranks : fit.ranks < ranks) continue;
    if (best == nullptr || (below ? fit.ranks > best->ranks : fit.ranks < best->ranks)) best = &fit;
  }
  return best;
}

NodeFabric measured(const FabricFit& low, const FabricFit& high, int ranks) {
  double w = 0;
  if (high.ranks != low.ranks) {
    w = std::log2(static_cast<double>(ranks) / low.ranks) /
        std::log2(static_cast<double>(high.ranks) / low.ranks);
  }
  const auto mix = [w](double a, double b) { return a + w * (b - a); };
  NodeFabric fabric{1e-6 * mix(low.alpha_us, high.alpha_us),
                    mix(low.bandwidth, high.bandwidth),
                    std::max(low.spread, high.spread),
                    {}};
  fabric.basis = low.fabric + ", " + std::to_string(ranks) + " GPUs, " +
                 (w == 0 && low.ranks == ranks ? "measured" : "between measured counts");
  if (ranks > high.ranks || ranks < low.ranks)
    fabric.basis = low.fabric + ", beyond measured counts";
  return fabric;
}

NodeFabric by_data_sheet(const Gpu& gpu, int ranks, const CollectiveCoefficients& c) {
  const bool linked = !gpu.link.empty() && gpu.link_bandwidth > 0;
  // Data sheets count both directions of a link together; a ring sends one way.
  double bandwidth =
      linked ? gpu.link_bandwidth / 2 * c.link_share : gpu.pcie_bandwidth * c.pcie_share;
  constexpr double kStandIn = 8e9;  // PCIe 3.0 x8 and staging through host memory
  if (!std::isfinite(bandwidth) || bandwidth <= 0) bandwidth = kStandIn;
  // A bridge joins two GPUs only; beyond that the ring crosses PCIe.
  if (linked && ranks > 2 && gpu.link.find("bridge") != std::string::npos) {
    bandwidth = gpu.pcie_bandwidth > 0 ? gpu.pcie_bandwidth * c.pcie_share : kStandIn;
  }
  return {1e-6 * (c.alpha_us + c.alpha_rank_us * ranks), bandwidth, c.unfitted_spread,
          (linked ? gpu.link : std::string("PCIe")) + ", data sheet only"};
}

NodeFabric within_node(const Gpu& gpu, int ranks, const CollectiveCoefficients& c) {
  const std::string fabric = gpu.link.empty() ? "PCIe" : gpu.link;
  const FabricFit* low = nearest(c.fits, fabric, ranks, true);
  const FabricFit* high = nearest(c.fits, fabric, ranks, false);
  if (low == nullptr && high == nullptr) return by_data_sheet(gpu, ranks, c);
  if (low != nullptr && high != nullptr) return measured(*low, *high, ranks);
  const FabricFit& only = low != nullptr ? *low : *high;
  NodeFabric beyond = measured(only, only, ranks);
  beyond.spread = std::max(beyond.spread, c.unfitted_spread);
  return beyond;
}

}  // namespace

Nanos AllReduceModel::time_of(Bytes bytes) const {
  if (ranks < 2) return Nanos(0);
  const double factor = 2.0 * (ranks - 1) / ranks;
  const double size = std::max(0.0, static_cast<double>(bytes.count()));
  return Nanos((alpha_seconds + factor * size / bandwidth) * 1e9);
}

Nanos AllReduceModel::time_of(const CollectiveShape& shape, Bytes bytes) const {
  if (ranks < 2 || shape.ranks < 2) return Nanos(0);
  const double size = std::max(0.0, static_cast<double>(bytes.count()));
  const bool all_of_it =
      shape.kind == CollectiveKind::kBroadcast || shape.kind == CollectiveKind::kReduce;
  const double factor =
      all_of_it ? 1.0 : static_cast<double>(shape.ranks - 1) / static_cast<double>(shape.ranks);
  return Nanos((alpha_seconds / 2 + factor * size / bandwidth) * 1e9);
}

AllReduceModel all_reduce_model(const Machine& machine, RankLayout layout,
                                const CollectiveCoefficients& coefficients) {
  AllReduceModel model;
  model.ranks = std::max(1, layout.gpus_per_node) * std::max(1, layout.nodes);
  if (model.ranks < 2) {
    model.basis = "one GPU";
    return model;
  }
  NodeFabric fabric{0, HUGE_VAL, 0, {}};
  if (layout.gpus_per_node > 1)
    fabric = within_node(machine.gpu, layout.gpus_per_node, coefficients);
  if (layout.nodes > 1) {
    double network = machine.network_bandwidth * coefficients.network_share;
    constexpr double kStandIn = 1.25e9;  // 10 Gbit/s Ethernet
    if (!std::isfinite(network) || network <= 0) network = kStandIn;
    // NCCL runs one ring a network card through all GPUs of a node, so that the node's whole
    // network bandwidth carries the ring.
    fabric.bandwidth = std::min(fabric.bandwidth, network);
    fabric.alpha_seconds += 1e-6 * (coefficients.network_alpha_us * (layout.nodes - 1) +
                                    (layout.gpus_per_node > 1 ? 0 : coefficients.alpha_us));
    fabric.spread = std::max(fabric.spread, coefficients.unfitted_spread);
    fabric.basis +=
        (fabric.basis.empty() ? "" : "; ") + std::string("network by its nominal bandwidth");
  }
  model.alpha_seconds = fabric.alpha_seconds;
  model.bandwidth = fabric.bandwidth;
  model.spread = fabric.spread;
  model.basis = std::move(fabric.basis);
  return model;
}

}  // namespace stoker
