#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "device/host/host_speed.h"
#include "timing/collective/collectives.h"
#include "timing/common/step_time.h"
#include "timing/gpu/kernel_cost.h"

/// Internal to src/timing.
namespace stoker {

/// What the host's times leave open.
struct HostDoubt {
  /// Whose speed they were scaled by; null: they are of the very host.
  const HostSpeed* speed = nullptr;
  /// By how much of the step it would be shorter or longer, were the host faster or slower by its
  /// times' spread.
  double below = 0, above = 0;
};
/// 90 % relative half-width of the host's times.
[[nodiscard]] double host_spread(const Coefficients& coefficients, const HostSpeed* speed);

/// A part of a band: the share of the step that is in doubt, or its distance from what was
/// measured, and the coefficient that it is multiplied by, a 90 % relative half-width.
struct BandTerm {
  double share = 0;
  double spread = 0;
};

/// Terms beside the classes of cost: those that hold for all kernels or for some of any class.
inline constexpr std::array<const char*, 13> kFurtherTerms{
    "spread.common",           "spread.tensor", "band.capped",
    "band.backward",           "band.latency",  "compiled",
    "band.unseen_convolution", "beyond",        "kernel.graph_spread",
    "graph_latency",           "copy",          "communication",
    "replica_threads"};
/// Where "compiled" stands among all terms.
inline constexpr std::size_t kCompiledTerm = kCostClasses + 5;
inline constexpr std::size_t kBandTerms = kCostClasses + kFurtherTerms.size();
using BandTerms = std::array<BandTerm, kBandTerms>;
/// "gemm.spread", "band.backward": the coefficient that the term is multiplied by.
[[nodiscard]] std::string band_term_name(std::size_t term);

/// What the squares of the device's part of a band are the sum of, before it is scaled by what is
/// known of the GPU.
[[nodiscard]] BandTerms band_terms(const Program& program, const std::vector<KernelCost>& costs,
                                   const CostModel& model, const AllReduceModel& all_reduce,
                                   const StepTime& time);

/// Fills band, basis, class_device and uncosted_share from the residual spreads of the classes that
/// the step spends its time in (docs/models/time.md, "Bands").
void add_band(const Program& program, const std::vector<KernelCost>& costs, const CostModel& model,
              const AllReduceModel& all_reduce, const HostDoubt& host, StepTime& out);

}  // namespace stoker
