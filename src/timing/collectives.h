#pragma once

#include <string>

#include "base/units.h"
#include "machine/machine.h"
#include "step/shapes.h"
#include "timing/coefficients.h"

namespace stoker {

/// How many ranks reduce together and where they sit.
struct RankLayout {
  int gpus_per_node = 1;
  int nodes = 1;
  [[nodiscard]] int ranks() const { return gpus_per_node * nodes; }
};

/// alpha-beta cost of the ring all-reduce of one fabric and count.
struct AllReduceModel {
  double alpha_seconds = 0;
  double bandwidth = 1;  ///< bus bandwidth, bytes/s
  int ranks = 1;
  double spread = 0;  ///< 90 % relative half-width
  std::string basis;  ///< "NVLink 3, 8 GPUs, measured" or "link data sheet"

  [[nodiscard]] Nanos time_of(Bytes bytes) const;
  /// Of another collective over the whole tensor's `bytes`, on the same ring: a ring all-reduce is a
  /// reduce-scatter and an all-gather, so each is half of it; to or from one GPU all bytes (broadcast,
  /// reduce) or the others' share of them (scatter, gather) pass that GPU's link once.
  [[nodiscard]] Nanos time_of(const CollectiveShape& shape, Bytes bytes) const;
};

/// The fabric between the GPUs of `machine`: a measured fit where one exists for the link,
/// interpolated between counts; otherwise the data sheet's figure and a wide spread. Between nodes
/// the slower of link and network decides.
[[nodiscard]] AllReduceModel all_reduce_model(const Machine& machine, RankLayout layout,
                                              const CollectiveCoefficients& coefficients);

}  // namespace stoker
