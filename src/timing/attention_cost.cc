#include <algorithm>

#include "timing/cost_rules.h"

namespace stoker {
namespace {

/// Products of [q, d] x [d, k] size: QK^T and PV forward; QK^T again, dP, dV, dQ, dK backward
/// (Dao et al., FlashAttention-2, arXiv 2307.08691, section 3.1).
constexpr double kForwardProducts = 2, kBackwardProducts = 5;
/// The math path keeps the scores in memory: product out, scale and mask, softmax, dropout, each
/// reads and writes them, then the second product reads them. Backward touches them twice as often.
constexpr double kMathForwardPasses = 6, kMathBackwardPasses = 10;
/// Rows of queries that one thread block of a fused kernel owns (FlashAttention-2's tiles).
constexpr double kQueryTile = 128;

}  // namespace

RawCost attention_cost(const Kernel& kernel, const AttentionShape& s, const Device& device,
                       const Coefficients& coefficients) {
  const auto unit = static_cast<std::size_t>(kernel.unit);
  const double heads = static_cast<double>(s.batch) * static_cast<double>(s.heads);
  const double scores =
      heads * static_cast<double>(s.query_length) * static_cast<double>(s.key_length);
  const double products = s.backward ? kBackwardProducts : kForwardProducts;
  double flops = 2 * products * scores * static_cast<double>(s.head_dim);
  RawCost cost;
  double bytes = bytes_of(kernel);
  if (s.backend == AttentionBackend::kMath) {
    // Masked by -inf, not skipped: causal saves nothing here.
    cost.cost_class = CostClass::kMathAttention;
    bytes +=
        scores * size_of(kernel.dtype) * (s.backward ? kMathBackwardPasses : kMathForwardPasses);
    cost.compute = flops / (device.rate[unit] * coefficients.of(cost.cost_class).compute);
    cost.memory = memory_seconds(bytes, cost.cost_class, device, coefficients);
    return cost;
  }
  cost.cost_class = s.backend == AttentionBackend::kFlash ? CostClass::kFlashAttention
                                                          : CostClass::kMemoryEfficientAttention;
  if (s.causal) flops /= 2;
  // Few heads and short queries leave SMs without a block.
  const double blocks =
      heads *
      std::max(1.0, static_cast<double>(s.backward ? s.key_length : s.query_length) / kQueryTile);
  const double occupied = std::clamp(blocks / device.sms, 1.0 / device.sms, 1.0);
  cost.compute = flops / (device.rate[unit] * coefficients.of(cost.cost_class).compute * occupied);
  cost.memory = memory_seconds(bytes, cost.cost_class, device, coefficients);
  return cost;
}

}  // namespace stoker
