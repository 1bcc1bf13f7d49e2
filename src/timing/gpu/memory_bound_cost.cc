#include <algorithm>
#include <cmath>

#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

CostClass cost_class_of(const Kernel& kernel, bool& has_rule) {
  switch (kernel.kernel_class) {
    case KernelClass::kNormalization:
      if (std::holds_alternative<RowShape>(kernel.shape)) {
        return kernel.phase == StepPhase::kBackward ? CostClass::kLayerNormBackward
                                                    : CostClass::kLayerNorm;
      }
      return kernel.phase == StepPhase::kBackward ? CostClass::kNormalizationBackward
                                                  : CostClass::kNormalization;
    case KernelClass::kSoftmax:
      return CostClass::kSoftmax;
    case KernelClass::kReduction:
      return CostClass::kReduction;
    case KernelClass::kElementwise:
      return CostClass::kElementwise;
    case KernelClass::kGather:
      return CostClass::kGather;
    case KernelClass::kPooling:
      return CostClass::kPooling;
    case KernelClass::kResample:
      return CostClass::kResample;
    case KernelClass::kCopy:
      return CostClass::kCopy;
    case KernelClass::kOptimizer:
      return CostClass::kOptimizer;
    case KernelClass::kFill:
      return CostClass::kFill;
    case KernelClass::kCollective:
      return CostClass::kCollective;
    case KernelClass::kHostToDevice:
      return CostClass::kHostToDevice;
    // Classes with rules of their own arrive here only without a shape.
    case KernelClass::kGemm:
      has_rule = false;
      return CostClass::kGemm;
    case KernelClass::kConvolution:
      has_rule = false;
      return CostClass::kConvolution;
    case KernelClass::kDepthwiseConvolution:
      has_rule = false;
      return CostClass::kDepthwise;
    case KernelClass::kAttention:
      has_rule = false;
      return CostClass::kMathAttention;
    case KernelClass::kRnn:
      has_rule = false;
      return CostClass::kRnn;
    case KernelClass::kUncosted:
      break;
  }
  has_rule = false;
  return CostClass::kUncosted;
}

/// Whether a class falls short of wide memories. The others read and write in order; measured single
/// operators say that they keep up.
bool saturates(CostClass cost_class) {
  switch (cost_class) {
    case CostClass::kTensorConvolution:
    case CostClass::kTensorConvolutionInput:
    case CostClass::kTensorConvolutionWeight:
    case CostClass::kLayoutTranspose:
    case CostClass::kNormalization:
    case CostClass::kNormalizationBackward:
    case CostClass::kReduction:
    case CostClass::kPooling:
      return true;
    default:
      return false;
  }
}

}  // namespace

double bytes_of(const Kernel& kernel) {
  return std::max(0.0, static_cast<double>(kernel.read.count())) +
         std::max(0.0, static_cast<double>(kernel.written.count()));
}

double memory_seconds(double bytes, CostClass cost_class, const Device& device,
                      const Coefficients& coefficients) {
  if (!(bytes > 0)) return 0;
  double sustained = device.bandwidth * coefficients.of(cost_class).memory;
  if (saturates(cost_class)) {
    sustained *= std::pow(device.bandwidth / coefficients.kernel.bandwidth_reference,
                          coefficients.kernel.bandwidth_exponent - 1);
  }
  const double plain = bytes / sustained;
  const double resident = device.l2_bytes * coefficients.kernel.l2_share;
  // All of it hits while it fits; then the share of hits falls with the square, which keeps the
  // time rising.
  const double reach = std::min(1.0, resident / bytes);
  return plain * (1 - (1 - 1 / coefficients.kernel.l2_speedup) * reach * reach);
}

RawCost memory_bound_cost(const Kernel& kernel, const Device& device,
                          const Coefficients& coefficients, bool pinned) {
  RawCost cost;
  cost.cost_class = cost_class_of(kernel, cost.has_rule);
  if (cost.cost_class == CostClass::kHostToDevice) {
    const double share = pinned ? coefficients.copy.pinned : coefficients.copy.pageable;
    // The bytes cross once, whichever side lists them.
    const double bytes = std::max(static_cast<double>(kernel.read.count()),
                                  static_cast<double>(kernel.written.count()));
    cost.memory = std::max(0.0, bytes) / (device.pcie * share);
    cost.latency = coefficients.copy.latency_us * 1e-6;
    return cost;
  }
  const double rate = device.rate[static_cast<std::size_t>(kernel.unit)];
  cost.compute =
      std::max(0.0, kernel.flops.count()) / (rate * coefficients.of(cost.cost_class).compute);
  cost.memory = memory_seconds(bytes_of(kernel), cost.cost_class, device, coefficients);
  return cost;
}

}  // namespace stoker
