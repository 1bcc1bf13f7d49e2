#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/durations.h"
#include "base/units.h"
#include "device/machine.h"
#include "operators/shapes.h"
#include "timing/common/coefficients.h"

namespace stoker {

/// How many ranks reduce together and where they sit.
struct RankLayout {
  int gpus_per_node = 1;
  int nodes = 1;
  [[nodiscard]] int ranks() const { return gpus_per_node * nodes; }
};

/// Cost of the all-reduce of one fabric and count by size: straight pieces between measured sizes,
/// since the library changes protocol and algorithm with the size.
struct AllReduceModel {
  struct Point {
    double bytes;
    Nanos time;
  };
  std::vector<Point>
      curve;  ///< by rising bytes; the first is at 0, the last piece goes on for ever
  int ranks = 1;
  double spread = 0;  ///< 90 % relative half-width
  std::string basis;  ///< "NVLink 3, 8 GPUs, measured" or "link data sheet"

  [[nodiscard]] Nanos time_of(Bytes bytes) const;
  /// Time of another collective over a tensor's `bytes` on the same ring: a ring all-reduce is a
  /// reduce-scatter and an all-gather, so each is half of it; to or from one GPU all bytes
  /// (broadcast, reduce) or the others' share of them (scatter, gather) pass that GPU's link once.
  [[nodiscard]] Nanos time_of(const CollectiveShape& shape, Bytes bytes) const;

  [[nodiscard]] Seconds alpha() const;     ///< what no bytes take
  [[nodiscard]] double bandwidth() const;  ///< bus bandwidth of the largest sizes, bytes/s
};

/// All-reduces of a job's collectives: between all GPUs, and where fewer share one copy of the
/// model (hybrid sharding) within such a group and between its copies.
struct GroupedReduce {
  AllReduceModel all, within, between;
  std::int64_t side_by_side = 1;  ///< groups of copies that reduce at once over one node's network

  [[nodiscard]] Nanos time_of(const CollectiveShape& shape, Bytes bytes) const;
};
[[nodiscard]] GroupedReduce grouped_reduce(const Machine& machine, RankLayout layout, int group,
                                           const CollectiveCoefficients& coefficients);

/// The fabric between the GPUs of `machine`: a measured curve where one exists for the link,
/// interpolated between counts; otherwise the data sheet's figure and a wide spread. Between nodes
/// the slower of link and network decides.
[[nodiscard]] AllReduceModel all_reduce_model(const Machine& machine, RankLayout layout,
                                              const CollectiveCoefficients& coefficients);

/// What the GPUs of a node talk over, and whether its speed is measured, from the data sheet or a
/// stand-in: for people. Empty when nothing had to be assumed.
[[nodiscard]] std::string fabric_assumption(const Machine& machine, RankLayout layout,
                                            const CollectiveCoefficients& coefficients);

/// fabric_assumption(), and the link where nobody stated it, as answers for several GPUs assume.
[[nodiscard]] std::string link_assumption(const Machine& machine, RankLayout layout,
                                          const CollectiveCoefficients& coefficients);

/// How long a step of `total` on so many ranks waits for the slowest of them; 0 for one.
[[nodiscard]] Nanos wait_for_slowest(int ranks, Nanos total,
                                     const CollectiveCoefficients& coefficients);

/// Bytes/s that stand in where nothing is known of the network between nodes: 10 Gbit/s Ethernet.
inline constexpr double kStandInNetwork = 1.25e9;

}  // namespace stoker
