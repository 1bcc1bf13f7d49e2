#include <algorithm>
#include <cmath>

#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

CostClass cost_class_of(const Kernel& kernel) {
  const KernelClassRow& row = row_of(kernel.kernel_class);
  const bool backward = kernel.phase == StepPhase::kBackward;
  if (std::holds_alternative<RowShape>(kernel.shape))
    return backward ? row.cost_rows_backward : row.cost_rows;
  return backward ? row.cost_backward : row.cost;
}

}  // namespace

double bytes_of(const Kernel& kernel) {
  return std::max(0.0, static_cast<double>(kernel.read.count())) +
         std::max(0.0, static_cast<double>(kernel.written.count()));
}

Seconds memory_time(double bytes, CostClass cost_class, const GpuRates& device,
                    const Coefficients& coefficients) {
  if (!(bytes > 0)) return Seconds(0);
  double sustained = device.bandwidth * coefficients.of(cost_class).memory;
  if (row_of(cost_class).saturates) {
    sustained *= std::pow(device.bandwidth / coefficients.kernel.bandwidth_reference,
                          coefficients.kernel.bandwidth_exponent - 1);
  }
  const Seconds plain(bytes / sustained);
  const double resident = device.l2_bytes * coefficients.kernel.l2_share;
  // All of it hits while it fits; then the share of hits falls with the square, which keeps the
  // time rising.
  const double reach = std::min(1.0, resident / bytes);
  return plain * (1 - (1 - 1 / coefficients.kernel.l2_speedup) * reach * reach);
}

RawCost memory_bound_cost(const Kernel& kernel, const GpuRates& device,
                          const Coefficients& coefficients, CopyWay copy) {
  RawCost cost;
  cost.cost_class = cost_class_of(kernel);
  // Classes with rules of their own arrive here only without a shape.
  cost.has_rule = !row_of(kernel.kernel_class).needs_shape;
  if (cost.cost_class == CostClass::kHostToDevice) {
    const double share = is_pinned(copy) ? coefficients.copy.pinned : coefficients.copy.pageable;
    // The bytes cross once, whichever side lists them.
    const double bytes = std::max(static_cast<double>(kernel.read.count()),
                                  static_cast<double>(kernel.written.count()));
    cost.memory = Seconds(std::max(0.0, bytes) / (device.pcie * share));
    cost.latency = as_seconds(coefficients.copy.latency);
    return cost;
  }
  const double rate = device.rate[static_cast<std::size_t>(kernel.unit)];
  cost.compute = Seconds(std::max(0.0, kernel.flops.count()) /
                         (rate * coefficients.of(cost.cost_class).compute));
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  return cost;
}

}  // namespace stoker
