#include "timing/gpu/kernel_cost.h"

#include <algorithm>
#include <cmath>

#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

/// No single kernel takes longer; keeps absurd shapes finite: a day.
constexpr Seconds kLongestKernel{86400};

Seconds finite(Seconds time) {
  return std::isfinite(time.count()) ? std::clamp(time, Seconds(0), kLongestKernel)
                                     : kLongestKernel;
}

RawCost raw_cost(const Kernel& kernel, const GpuRates& device, const Coefficients& coefficients,
                 CopyWay copy) {
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    return gemm_cost(kernel, *gemm, device, coefficients);
  }
  if (const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape)) {
    return convolution_cost(kernel, *convolution, device, coefficients);
  }
  if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape)) {
    return attention_cost(kernel, *attention, device, coefficients);
  }
  if (const auto* rnn = std::get_if<RnnShape>(&kernel.shape)) {
    return rnn_cost(kernel, *rnn, device, coefficients);
  }
  return memory_bound_cost(kernel, device, coefficients, copy);
}

}  // namespace

CostModel::CostModel(const Gpu& gpu, const Coefficients& coefficients)
    : coefficients_(coefficients), device_(gpu_rates(gpu, coefficients)) {
  if (coefficients.residual != nullptr) learned_ = coefficients.residual->of_gpu(gpu);
}

/// Without bf16 units each number is widened before and rounded after the arithmetic, which costs
/// what the smaller tensors save: the kernel of fp32 tensors stands for it. Reports of such GPUs
/// range from fp32's speed to half of it (T4: github.com/openxla/xla/issues/12429,
/// github.com/jax-ml/jax/issues/21212).
Kernel emulated(Kernel kernel) {
  kernel.dtype = DType::kF32;
  kernel.read += kernel.read;
  kernel.written += kernel.written;
  return kernel;
}

KernelCost CostModel::cost_of(const Kernel& given) const {
  const bool emulates = given.dtype == DType::kBf16 && !device_.has_bf16;
  const Kernel widened = emulates ? emulated(given) : Kernel();
  const Kernel& kernel = emulates ? widened : given;
  const RawCost raw = raw_cost(kernel, device_, coefficients_, copy_);
  const KernelCoefficients& k = coefficients_.kernel;
  const Seconds floor =
      as_seconds(k.floor + k.launch * std::max(0, static_cast<int>(kernel.launches) - 1));
  double scale = coefficients_.of(raw.cost_class).scale;
  const Seconds by_rules = raw.latency + std::max(raw.compute, raw.memory);
  if (learned_ != nullptr && by_rules > Seconds(0)) {
    const auto learned = learned_->time_of(kernel);
    if (learned && *learned >= Seconds(0)) scale *= *learned / by_rules;
  }
  const Seconds compute = finite(scale * raw.compute), memory = finite(scale * raw.memory),
                latency = finite(scale * raw.latency);
  KernelCost cost;
  cost.compute = as_nanos(compute);
  cost.memory = as_nanos(memory);
  cost.time = as_nanos(floor + latency + std::max(compute, memory));
  cost.cost_class = raw.cost_class;
  cost.has_rule = raw.has_rule;
  if (std::max(compute, memory) > floor + latency) {
    cost.bound = compute > memory ? Bound::kCompute : Bound::kMemory;
  }
  return cost;
}

KernelCost cost_of(const Kernel& kernel, const Gpu& gpu, const Coefficients& coefficients) {
  return CostModel(gpu, coefficients).cost_of(kernel);
}

}  // namespace stoker
