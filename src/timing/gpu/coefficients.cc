#include "timing/gpu/coefficients.h"

#include <cmath>
#include <functional>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, kCostClasses> kClassNames{"gemm",
                                                                 "gemm_weight",
                                                                 "tensor_gemm",
                                                                 "tensor_gemm_weight",
                                                                 "tensor_gemm_batched",
                                                                 "convolution",
                                                                 "convolution_input",
                                                                 "convolution_weight",
                                                                 "winograd",
                                                                 "tensor_convolution",
                                                                 "tensor_convolution_input",
                                                                 "tensor_convolution_weight",
                                                                 "layout_transpose",
                                                                 "grouped_convolution",
                                                                 "grouped_convolution_nhwc",
                                                                 "depthwise",
                                                                 "depthwise_nhwc",
                                                                 "depthwise_weight",
                                                                 "depthwise_weight_nhwc",
                                                                 "flash_attention",
                                                                 "memory_efficient_attention",
                                                                 "math_attention",
                                                                 "normalization",
                                                                 "normalization_backward",
                                                                 "layer_norm",
                                                                 "layer_norm_backward",
                                                                 "softmax",
                                                                 "reduction",
                                                                 "elementwise",
                                                                 "gather",
                                                                 "pooling",
                                                                 "resample",
                                                                 "rnn",
                                                                 "copy",
                                                                 "optimizer",
                                                                 "fill",
                                                                 "host_to_device",
                                                                 "collective",
                                                                 "uncosted"};

/// Priors, used as they stand only where the shipped file says nothing. Element-wise, norms,
/// transposes and dense convolution are the reciprocals of typical multiples of the ideal measured
/// on an RTX 3090 (docs/models/time.md, "Priors"); the rest is judgement, which is why their spread
/// is wide.
constexpr std::array<ClassCoefficients, kCostClasses> kPriors{
    {{0.85, 0.80, 0.25}, {0.80, 0.80, 0.30}, {0.80, 0.80, 0.35}, {0.75, 0.80, 0.40},
     {0.75, 0.60, 0.40}, {0.70, 0.75, 0.40}, {0.65, 0.75, 0.40}, {0.60, 0.75, 0.45},
     {0.75, 0.75, 0.40}, {0.75, 0.75, 0.35}, {0.70, 0.75, 0.35}, {0.65, 0.75, 0.40},
     {0.50, 0.74, 0.30}, {0.25, 0.70, 0.60}, {0.25, 0.70, 0.80}, {0.25, 0.60, 0.50},
     {0.30, 0.50, 0.50}, {1.00, 0.60, 0.60}, {0.10, 0.40, 0.60}, {0.90, 0.80, 0.40},
     {0.50, 0.80, 0.40}, {0.60, 0.75, 0.40}, {0.50, 0.80, 0.30}, {0.50, 0.75, 0.30},
     {0.50, 0.70, 0.30}, {0.50, 0.60, 0.40}, {0.50, 0.80, 0.30}, {0.50, 0.75, 0.40},
     {0.50, 0.87, 0.20}, {0.50, 0.55, 0.50}, {0.50, 0.70, 0.40}, {0.50, 0.60, 0.50},
     {0.60, 0.70, 0.60}, {0.50, 0.80, 0.25}, {0.50, 0.80, 0.25}, {0.50, 0.80, 0.30},
     {0.50, 1.00, 0.30}, {0.50, 0.80, 0.50}, {0.50, 0.50, 0.80}}};

/// Calls `visit(name, member)` for every number of a Coefficients. One list serves reading and
/// overriding.
template <class C, class Visit>
void visit_all(C& c, Visit&& visit) {
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    const std::string name(kClassNames[i]);
    visit(name + ".compute", c.classes[i].compute);
    visit(name + ".memory", c.classes[i].memory);
    visit(name + ".spread", c.classes[i].spread);
    visit(name + ".scale", c.classes[i].scale);
  }
  visit("kernel.floor_us", c.kernel.floor_us);
  visit("kernel.launch_us", c.kernel.launch_us);
  visit("kernel.l2_speedup", c.kernel.l2_speedup);
  visit("kernel.l2_share", c.kernel.l2_share);
  visit("kernel.bandwidth_exponent", c.kernel.bandwidth_exponent);
  visit("kernel.bandwidth_reference", c.kernel.bandwidth_reference);
  visit("kernel.tile_prologue", c.kernel.tile_prologue);
  visit("kernel.lone_block", c.kernel.lone_block);
  visit("kernel.unaligned_tensor", c.kernel.unaligned_tensor);
  visit("kernel.recurrence_us", c.kernel.recurrence_us);
  visit("kernel.graph_gain_us", c.kernel.graph_gain_us);
  visit("kernel.graph_spread", c.kernel.graph_spread);
  visit("kernel.tensor_exponent", c.kernel.tensor_exponent);
  visit("kernel.tensor_reference", c.kernel.tensor_reference);
  visit("kernel.unaligned_convolution", c.kernel.unaligned_convolution);
  visit("kernel.unaligned_depthwise", c.kernel.unaligned_depthwise);
  visit("power.share", c.power.share);
  visit("power.pj_28nm", c.power.pj_28nm);
  visit("power.pj_16nm", c.power.pj_16nm);
  visit("power.pj_8nm", c.power.pj_8nm);
  visit("power.pj_7nm", c.power.pj_7nm);
  visit("power.pj_5nm", c.power.pj_5nm);
  visit("power.half_tensor", c.power.half_tensor);
  visit("power.tf32_tensor", c.power.tf32_tensor);
  visit("host.forward_us", c.host.forward_us);
  visit("host.backward_us", c.host.backward_us);
  visit("host.optimizer_us", c.host.optimizer_us);
  visit("host.list_us", c.host.list_us);
  visit("host.update_us", c.host.update_us);
  visit("host.view_us", c.host.view_us);
  visit("host.launch_us", c.host.launch_us);
  visit("host.synchronize_us", c.host.synchronize_us);
  visit("host.step_us", c.host.step_us);
  visit("host.graph_us", c.host.graph_us);
  visit("host.graph_kernel_us", c.host.graph_kernel_us);
  visit("host.spread", c.host.spread);
  visit("pcie.pinned", c.copy.pinned);
  visit("pcie.pageable", c.copy.pageable);
  visit("pcie.latency_us", c.copy.latency_us);
  visit("collective.contention", c.collective.contention);
  visit("collective.straggler", c.collective.straggler);
  visit("collective.straggler_us", c.collective.straggler_us);
  visit("collective.straggler_growth", c.collective.straggler_growth);
  visit("collective.straggler_most", c.collective.straggler_most);
  visit("collective.pcie_share", c.collective.pcie_share);
  visit("collective.link_share", c.collective.link_share);
  visit("collective.network_share", c.collective.network_share);
  visit("collective.alpha_us", c.collective.alpha_us);
  visit("collective.alpha_rank_us", c.collective.alpha_rank_us);
  visit("collective.network_alpha_us", c.collective.network_alpha_us);
  visit("collective.unfitted_spread", c.collective.unfitted_spread);
  for (std::size_t i = 0; i < kLayerParts; ++i) {
    visit("session." + std::string(name_of(static_cast<LayerPart>(i))), c.session.part[i]);
  }
  for (std::size_t i = 0; i < kLayerOptimizers; ++i) {
    const std::string name(name_of(static_cast<LayerOptimizer>(i)));
    visit("session.convolution_us_" + name, c.session.convolution_us[i]);
    visit("session.dense_us_" + name, c.session.dense_us[i]);
  }
  visit("session.spread", c.session.spread);
  visit("session.floor_spread", c.session.floor_spread);
  visit("spread.common", c.common_spread);
  visit("spread.tensor", c.tensor_spread);
}

Error unknown_name(std::string_view name) {
  std::vector<std::string> names;
  const Coefficients defaults;
  visit_all(defaults, [&](std::string_view n, double) { names.emplace_back(n); });
  return {ErrorCode::kBadInput,
          "no time coefficient is called \"" + std::string(name) + "\"" + suggestion(name, names),
          {}};
}

}  // namespace

std::string_view name_of(CostClass cost_class) {
  return kClassNames[static_cast<std::size_t>(cost_class)];
}

std::string_view architecture_name(Architecture architecture) {
  constexpr std::array<std::string_view, 11> kNames{"kepler",    "maxwell", "pascal", "volta",
                                                    "turing",    "ampere",  "ada",    "hopper",
                                                    "blackwell", "cdna",    "other"};
  return kNames[static_cast<std::size_t>(architecture)];
}

Coefficients::Coefficients() : classes(kPriors) {}

Status apply(const CoefficientPatch& patch, Coefficients& coefficients) {
  for (const auto& [wanted, value] : patch.values) {
    if (!std::isfinite(value) || value < 0 || value > 1e18) {
      return fail(ErrorCode::kBadInput, "a time coefficient must be a finite number of at least 0",
                  wanted);
    }
    bool found = false;
    bool zero_allowed = true;
    visit_all(coefficients, [&](std::string_view name, double& member) {
      if (name != wanted) return;
      found = true;
      // These divide.
      zero_allowed = !name.ends_with(".compute") && !name.ends_with(".memory") &&
                     !name.starts_with("power.") && !name.ends_with("_share") &&
                     !name.ends_with(".scale") && !name.starts_with("pcie.p") &&
                     name != "kernel.l2_speedup" && !name.starts_with("kernel.unaligned_") &&
                     name != "kernel.lone_block" && !name.ends_with("_reference");
      if (value > 0 || zero_allowed) member = value;
    });
    if (!found) return tl::unexpected(unknown_name(wanted));
    if (value == 0 && !zero_allowed) {
      return fail(ErrorCode::kBadInput, "this time coefficient divides and must be above 0",
                  wanted);
    }
  }
  return {};
}

Result<double> value_of(const Coefficients& coefficients, std::string_view name) {
  double value = NAN;
  visit_all(coefficients, [&](std::string_view n, const double& member) {
    if (n == name) value = member;
  });
  if (std::isnan(value)) return tl::unexpected(unknown_name(name));
  return value;
}

}  // namespace stoker
