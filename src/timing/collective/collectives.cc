#include "timing/collective/collectives.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/percent.h"
#include "base/setting.h"
#include "base/text.h"

namespace stoker {
namespace {

using Curve = std::vector<AllReduceModel::Point>;

/// Sizes at which a curve that no table gives is written down; straight in between. A gradient
/// bucket is 1 to 25 MiB and more, a whole model some GiB.
constexpr double kSmallest = 64 << 10;
constexpr double kLargest = 16.0 * (1 << 30);

/// Share of all bytes that each link of a ring carries: reduce-scatter and all-gather.
double ring_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

Nanos at(const Curve& curve, double bytes) {
  auto above =
      std::upper_bound(curve.begin() + 1, curve.end() - 1, bytes,
                       [](double b, const AllReduceModel::Point& p) { return b < p.bytes; });
  const auto& high = *above;
  const auto& low = *(above - 1);
  return low.time + (high.time - low.time) * (bytes - low.bytes) / (high.bytes - low.bytes);
}

Curve line(Seconds alpha, Seconds a_byte) {
  return {{0, as_nanos(alpha)}, {kLargest, as_nanos(alpha + a_byte * kLargest)}};
}

/// A fit starts at 1 MiB. Below that only latency counts: its first piece goes on down, but no
/// further than to a third of what the smallest measured size takes.
Curve from_fit(const FabricFit& fit) {
  Curve curve{{0, Nanos(0)}};
  for (const auto& [bytes, time] : fit.curve) curve.push_back({bytes, as_nanos(time)});
  const auto& first = curve[1];
  const auto& second = curve[2];
  const Nanos slope = (second.time - first.time) / (second.bytes - first.bytes);
  curve[0].time = std::clamp(first.time - slope * first.bytes, first.time / 3, first.time);
  return curve;
}

/// `f(bytes)` at the sizes of both curves and at powers of two.
template <class F>
Curve sampled(const Curve& a, const Curve& b, F&& f) {
  std::vector<double> sizes{0};
  for (double size = kSmallest; size <= kLargest; size *= 2) sizes.push_back(size);
  for (const Curve* curve : {&a, &b}) {
    for (const auto& point : *curve) sizes.push_back(point.bytes);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  Curve curve;
  for (const double size : sizes) curve.push_back({size, f(size)});
  return curve;
}

struct NodeFabric {
  Curve curve;
  double spread = 0;
  std::string basis;
  std::string assumption = {};
};

/// The fit of one fabric at the count next to `ranks`, below or above.
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

/// Bytes of a bucket of gradients, whose collectives a step waits for: DistributedDataParallel's
/// bucket_cap_mb=25.
constexpr double kBucket = 25 << 20;

/// 90 % half-width of a ring through a part of a mesh: by the V100s' cube, served without its rows.
constexpr double kMeshSpread = 0.9;

/// What a curve leaves open on machines with the links of the measured one.
double spread_of(const FabricFit& fit, const CollectiveCoefficients& c) {
  return std::hypot(fit.spread_at(kBucket), c.machine_spread);
}

/// Times between two measured counts are interpolated in log2(ranks). With a switch little happens
/// between them; in a mesh rings jump with the count.
NodeFabric between(const FabricFit& low, const FabricFit& high, int ranks, bool mesh,
                   const CollectiveCoefficients& c) {
  if (low.ranks == ranks)
    return {from_fit(low), spread_of(low, c),
            low.fabric + ", " + std::to_string(ranks) + " GPUs, measured"};
  const double w = std::log2(static_cast<double>(ranks) / low.ranks) /
                   std::log2(static_cast<double>(high.ranks) / low.ranks);
  const Curve below = from_fit(low), above = from_fit(high);
  return {sampled(below, above,
                  [&](double size) { return (1 - w) * at(below, size) + w * at(above, size); }),
          std::max({spread_of(low, c), spread_of(high, c),
                    mesh ? std::max(c.unfitted_spread, kMeshSpread) : c.between_spread}),
          low.fabric + ", " + std::to_string(ranks) + " GPUs, between measured counts"};
}

/// Beyond the measured counts: each link carries as much more as a longer ring asks for, and each
/// rank adds its latency.
NodeFabric beyond(const FabricFit& last, int ranks, const CollectiveCoefficients& c) {
  const Curve measured = from_fit(last);
  const double factor = ring_factor(ranks) / ring_factor(last.ranks);
  const Nanos latency = as_nanos(c.alpha_rank) * std::max(0, ranks - last.ranks);
  NodeFabric fabric{sampled(measured, measured,
                            [&](double size) { return at(measured, size) * factor + latency; }),
                    std::max(spread_of(last, c), c.unfitted_spread),
                    last.fabric + ", beyond measured counts"};
  fabric.assumption = last.fabric + " between " + std::to_string(ranks) + " GPUs follows from " +
                      std::to_string(last.ranks) + " measured ones";
  return fabric;
}

/// The figures of the links whose measured curves ship, per GPU and both directions together: of
/// V100-SXM2 and A100-SXM4, by their data sheets.
constexpr std::array<std::pair<std::string_view, double>, 2> kMeasuredLinks{
    {{"NVLink 2", 300e9}, {"NVLink 3", 600e9}}};

double measured_at(std::string_view link) {
  for (const auto& [name, bandwidth] : kMeasuredLinks) {
    if (simplified(name) == simplified(link)) return bandwidth;
  }
  return 0;
}

std::string gigabytes(double bandwidth) {
  return std::to_string(std::lround(bandwidth / 1e9)) + " GB/s";
}

/// What no table gives: a line by the bandwidth that a ring reaches.
Curve by_rule(int ranks, double bandwidth, const CollectiveCoefficients& c) {
  return line(as_seconds(c.alpha + c.alpha_rank * ranks), Seconds(ring_factor(ranks) / bandwidth));
}

/// Data sheets count both directions of a link together; a ring sends one way.
double ring_bandwidth(double link_bandwidth, const CollectiveCoefficients& c) {
  return link_bandwidth / 2 * c.link_share;
}

std::optional<NodeFabric> measured(const std::string& fabric, int ranks, bool mesh,
                                   const CollectiveCoefficients& c) {
  const FabricFit* low = nearest(c.fits, fabric, ranks, true);
  const FabricFit* high = nearest(c.fits, fabric, ranks, false);
  if (low == nullptr && high == nullptr) return std::nullopt;
  if (low != nullptr && high != nullptr) return between(*low, *high, ranks, mesh, c);
  return beyond(low != nullptr ? *low : *high, ranks, c);
}

/// A measured curve holds for the figure of the link that it was measured on. A slower link takes
/// at least what its own figure allows, to the same share; a faster one carries as much more.
NodeFabric at_its_figure(NodeFabric fabric, const Gpu& gpu, int ranks,
                         const CollectiveCoefficients& c) {
  const double known = measured_at(gpu.link);
  const double given = gpu.link_bandwidth;
  if (known <= 0 || given <= 0 || given == known) return fabric;
  const Curve curve = fabric.curve;
  const Nanos start = at(curve, 0);
  const Nanos reached = (at(curve, kLargest) - start) / kLargest;  // a byte
  const Nanos allowed = kSecond * ring_factor(ranks) / ring_bandwidth(known, c);
  const Nanos slope = std::min(allowed, reached) * known / given;
  fabric.curve = sampled(curve, curve, [&](double size) {
    const Nanos time = at(curve, size);
    if (given > known) return start + (time - start) * known / given;
    return std::max(time, start + slope * size);
  });
  fabric.spread = std::max(fabric.spread, c.unfitted_spread);
  fabric.basis =
      gpu.link + " at " + gigabytes(given) + " both ways, from one measured at " + gigabytes(known);
  fabric.assumption = "all-reduce over " + gpu.link + " at " + gigabytes(given) +
                      " both ways, as stated; measured was one of " + gigabytes(known);
  return fabric;
}

/// No ring over PCIe begins sooner than the measured ones over faster links.
Nanos latest_start(int ranks, const CollectiveCoefficients& c) {
  Nanos start;
  for (const FabricFit& fit : c.fits) {
    for (const bool below : {true, false}) {
      const FabricFit* near = nearest(c.fits, fit.fabric, ranks, below);
      if (near != nullptr) start = std::max(start, at(from_fit(*near), 0));
    }
  }
  return start;
}

/// Bytes/s of a ring that is staged through host memory over PCIe 3.0 x16.
constexpr double kStandInPcie = 6e9;

bool is_bridge(const Gpu& gpu) { return gpu.link.find("bridge") != std::string::npos; }

/// Where the speed of all-reduce comes from, of a link of so many bytes a second.
std::string source_of(double bandwidth, bool stated) {
  return stated ? "from the " + gigabytes(bandwidth) + " that the machine file states, not measured"
                : std::string("by the data sheet, not measured");
}

NodeFabric over_pcie(const Gpu& gpu, int ranks, const CollectiveCoefficients& c) {
  if (auto fabric = measured("PCIe", ranks, false, c)) return *fabric;
  double bandwidth = gpu.pcie_bandwidth * c.pcie_share;
  NodeFabric fabric{{},
                    c.unfitted_spread,
                    gpu.pcie_stated ? "PCIe at " + gigabytes(gpu.pcie_bandwidth) + " as stated"
                                    : "PCIe, data sheet only"};
  if (!std::isfinite(bandwidth) || bandwidth <= 0) {
    bandwidth = kStandInPcie;
    fabric.basis = "PCIe, stand-in of 6 GB/s";
    fabric.assumption =
        "all-reduce over PCIe at 6 GB/s, since the GPU's links have no figures ([link] of a "
        "machine file)";
  } else if (!gpu.link.empty() && gpu.link_bandwidth <= 0) {
    fabric.assumption =
        gpu.link + " has no figure, so all-reduce over PCIe ([link] gbs of a machine file)";
  } else {
    fabric.assumption = "all-reduce over PCIe at " + gigabytes(bandwidth) + ", " +
                        source_of(gpu.pcie_bandwidth, gpu.pcie_stated);
    if (gpu.link.empty() && !gpu.bridge.empty() && ranks == 2 && !gpu.link_stated)
      fabric.assumption +=
          "; the " + gpu.bridge + " is sold apart (" + mark(Setting::kLink) + " nvlink)";
  }
  if (is_bridge(gpu) && ranks > 2)
    fabric.assumption += "; the " + gpu.link + " joins two GPUs only";
  fabric.curve = by_rule(ranks, bandwidth, c);
  const Nanos later = std::max(Nanos(0), latest_start(ranks, c) - at(fabric.curve, 0));
  for (auto& point : fabric.curve) point.time += later;
  return fabric;
}

/// GPUs that a machine without a switch joins by links of their own; 0: a switch, or a pair.
int mesh_of(const Gpu& gpu) {
  const std::string link = simplified(gpu.link);
  // A cube of 8, in which a P100 has a link to each of 4 others.
  if (link == simplified("NVLink 1")) return 5;
  if (link == simplified("NVLink 2")) return 8;
  if (link != simplified("Infinity Fabric")) return 0;
  // MI300X: a link of 128 GB/s to each of 7 others; MI100: 92 to each of 3. MI210 and MI250X sit in
  // hives of several forms.
  constexpr double kToSeven = 7 * 128e9, kToThree = 3 * 92e9;
  if (gpu.link_bandwidth >= kToSeven) return 8;
  return gpu.link_bandwidth <= kToThree ? 4 : 0;
}

/// Share of a GPU's links that lead to the others of its ring, were each pair joined by as many.
double links_used(const Gpu& gpu, int ranks) {
  const int mesh = gpu.figure_stated ? 0 : mesh_of(gpu);
  return ranks < mesh ? (ranks - 1.0) / (mesh - 1.0) : 1.0;
}

std::optional<NodeFabric> over_link(const Gpu& gpu, int ranks, const CollectiveCoefficients& c) {
  // A bridge joins two GPUs only; beyond that the ring crosses PCIe.
  if (gpu.link.empty() || (is_bridge(gpu) && ranks > 2)) return std::nullopt;
  if (auto fabric = measured(gpu.link, ranks, ranks < mesh_of(gpu), c))
    return at_its_figure(std::move(*fabric), gpu, ranks, c);
  if (gpu.link_bandwidth <= 0) return std::nullopt;
  const double used = links_used(gpu, ranks);
  const double whole = ring_bandwidth(gpu.link_bandwidth, c);
  const double bandwidth = std::max(used * whole, std::min(whole, kStandInPcie));
  const std::string part =
      used < 1 ? ", " + percent(used) + " of its links between " + std::to_string(ranks) + " GPUs"
               : "";
  return NodeFabric{by_rule(ranks, bandwidth, c),
                    used < 1 ? std::max(c.unfitted_spread, kMeshSpread) : c.unfitted_spread,
                    gpu.figure_stated
                        ? gpu.link + " at " + gigabytes(gpu.link_bandwidth) + " as stated"
                        : gpu.link + ", data sheet only" + part,
                    "all-reduce over " + gpu.link + " at " + gigabytes(bandwidth) + ", " +
                        source_of(gpu.link_bandwidth, gpu.figure_stated)};
}

/// The time of a byte.
Nanos slope_of(const Curve& curve) { return (at(curve, kLargest) - at(curve, 0)) / kLargest; }

/// The library takes the faster way, so that a link never slows what would go without it; a link
/// that the user says is slower than PCIe is taken at its word.
NodeFabric within_node(const Gpu& gpu, int ranks, const CollectiveCoefficients& c) {
  auto link = over_link(gpu, ranks, c);
  if (!link) return over_pcie(gpu, ranks, c);
  const bool slow = gpu.link_bandwidth > 0 && gpu.link_bandwidth / 2 < gpu.pcie_bandwidth;
  if (gpu.pcie_bandwidth <= 0 || slow) return *link;
  NodeFabric pcie = over_pcie(gpu, ranks, c);
  return slope_of(pcie.curve) < slope_of(link->curve) ? pcie : *link;
}

/// One ring through all GPUs of all nodes: no faster than the node's links at that length, nor than
/// the network, whose whole bandwidth carries it (the library runs one ring a network card).
/// Latency grows with the depth of a tree over the nodes.
NodeFabric across_nodes(const Machine& machine, RankLayout layout, const NodeFabric& node,
                        const CollectiveCoefficients& c) {
  double network = machine.network_bandwidth * c.network_share;
  const bool known = std::isfinite(network) && network > 0;
  if (!known) network = kStandInNetwork;
  const double factor = ring_factor(layout.ranks());
  const bool alone = layout.gpus_per_node == 1;
  const double stretch = alone ? 0 : factor / ring_factor(layout.gpus_per_node);
  const Nanos alpha = alone ? as_nanos(c.alpha) : at(node.curve, 0);
  const Nanos hops = as_nanos(c.network_alpha) * std::log2(static_cast<double>(layout.nodes));
  const auto time = [&](double size) {
    const Nanos links = alone ? Nanos(0) : (at(node.curve, size) - alpha) * stretch;
    return alpha + hops + std::max(links, as_nanos(Seconds(factor * size / network)));
  };
  NodeFabric fabric{{}, std::max(node.spread, c.unfitted_spread), node.basis, node.assumption};
  if (alone) fabric.curve = line(as_seconds(alpha + hops), Seconds(factor / network));
  else fabric.curve = sampled(node.curve, node.curve, time);
  fabric.basis += fabric.basis.empty() ? "" : "; ";
  fabric.basis +=
      known ? "network by its nominal bandwidth" : "10 Gbit/s between nodes, a stand-in";
  if (!known) {
    fabric.assumption +=
        (fabric.assumption.empty() ? "" : "; ") +
        std::string("10 Gbit/s between nodes, since nothing is said of the network (") +
        mark(Setting::kNetwork) + ")";
  }
  return fabric;
}

NodeFabric fabric_of(const Machine& machine, RankLayout layout, const CollectiveCoefficients& c) {
  layout.gpus_per_node = std::max(1, layout.gpus_per_node);
  layout.nodes = std::max(1, layout.nodes);
  if (layout.ranks() < 2) return {{}, 0, "one GPU"};
  NodeFabric node;
  const Gpu* gpu = machine.device.gpu();
  if (layout.gpus_per_node > 1 && gpu != nullptr) node = within_node(*gpu, layout.gpus_per_node, c);
  return layout.nodes > 1 ? across_nodes(machine, layout, node, c) : node;
}

}  // namespace

Nanos AllReduceModel::time_of(Bytes bytes) const {
  if (ranks < 2 || curve.size() < 2) return Nanos(0);
  return at(curve, std::max(0.0, static_cast<double>(bytes.count())));
}

Nanos AllReduceModel::time_of(const CollectiveShape& shape, Bytes bytes) const {
  if (ranks < 2 || shape.ranks < 2) return Nanos(0);
  if (shape.kind == CollectiveKind::kAllGather || shape.kind == CollectiveKind::kReduceScatter)
    return 0.5 * time_of(bytes);
  const bool all_of_it =
      shape.kind == CollectiveKind::kBroadcast || shape.kind == CollectiveKind::kReduce;
  const double share =
      all_of_it ? 1.0 : static_cast<double>(shape.ranks - 1) / static_cast<double>(shape.ranks);
  const Nanos start = as_nanos(alpha());
  return start / 2 + (time_of(bytes) - start) * share / ring_factor(ranks);
}

Seconds AllReduceModel::alpha() const {
  return curve.empty() ? Seconds(0) : as_seconds(curve.front().time);
}

double AllReduceModel::bandwidth() const {
  if (ranks < 2 || curve.size() < 2) return HUGE_VAL;
  const Point& last = curve.back();
  const Point& before = curve[curve.size() - 2];
  return ring_factor(ranks) * (last.bytes - before.bytes) /
         as_seconds(last.time - before.time).count();
}

AllReduceModel all_reduce_model(const Machine& machine, RankLayout layout,
                                const CollectiveCoefficients& coefficients) {
  NodeFabric fabric = fabric_of(machine, layout, coefficients);
  AllReduceModel model;
  model.ranks = std::max(1, layout.gpus_per_node) * std::max(1, layout.nodes);
  model.curve = std::move(fabric.curve);
  model.spread = fabric.spread;
  model.basis = std::move(fabric.basis);
  return model;
}

Nanos GroupedReduce::time_of(const CollectiveShape& shape, Bytes bytes) const {
  if (shape.kind == CollectiveKind::kAllReduce) return between.time_of(side_by_side * bytes);
  return within.ranks == shape.ranks ? within.time_of(shape, bytes) : all.time_of(shape, bytes);
}

GroupedReduce grouped_reduce(const Machine& machine, RankLayout layout, int group,
                             const CollectiveCoefficients& coefficients) {
  GroupedReduce result{all_reduce_model(machine, layout, coefficients), {}, {}};
  if (group <= 0 || group >= layout.ranks()) return result;
  // A group fills a node before it begins the next; copies of one shard lie in as many nodes as
  // there are, and side by side in a node that holds several groups.
  const int in_node = std::min(group, std::max(1, layout.gpus_per_node));
  const int nodes_of_group = std::max(1, group / in_node);
  const int copies = layout.ranks() / group;
  const int copies_in_node = std::max(1, layout.gpus_per_node / in_node);
  const int apart = std::max(1, copies / copies_in_node);
  result.within = all_reduce_model(machine, {in_node, nodes_of_group}, coefficients);
  result.between = all_reduce_model(machine, {copies_in_node, apart}, coefficients);
  if (apart > 1) result.side_by_side = in_node;
  return result;
}

std::string fabric_assumption(const Machine& machine, RankLayout layout,
                              const CollectiveCoefficients& coefficients) {
  return fabric_of(machine, layout, coefficients).assumption;
}

std::string link_assumption(const Machine& machine, RankLayout layout,
                            const CollectiveCoefficients& coefficients) {
  std::string words = fabric_assumption(machine, layout, coefficients);
  const Gpu* gpu = machine.device.gpu();
  if (!words.empty() || layout.gpus_per_node < 2 || gpu == nullptr || gpu->link_stated)
    return words;
  return "the GPUs of a computer are joined by " + (gpu->link.empty() ? "PCIe" : gpu->link) + " (" +
         mark(Setting::kLink) + ")";
}

/// From here on a step loses a share for each doubling: rows of language models on 128 to 512 GPUs.
constexpr double kManyRanks = 64;

Nanos wait_for_slowest(int ranks, Nanos total, const CollectiveCoefficients& c) {
  if (ranks < 2) return Nanos(0);
  const double doublings = std::log2(ranks / 2.0);
  const Nanos fixed = as_nanos(c.straggler_wait * (1 + c.straggler_growth * doublings));
  const double beyond = std::max(0.0, std::log2(ranks / kManyRanks));
  return std::min(fixed, c.straggler_most * total) + c.straggler * beyond * total;
}

}  // namespace stoker
