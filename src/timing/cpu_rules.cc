#include "timing/cpu_rules.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "timing/kernel_cost.h"

namespace stoker {
namespace {

constexpr std::int64_t kGrain = 32768;  ///< at::internal::GRAIN_SIZE (ATen/TensorIterator.h)
/// Of a core's second-level cache what one operator's data can count on, and what of it a step leaves
/// there: the result of the operator before. Priors.
constexpr double kL2Share = 0.7, kStepNear = 0.5;
/// The last-level cache is shared with others.
constexpr double kL3Share = 0.5;
/// Copies across rows take so many cycles an element where vectors cannot serve (measured: 1 to 2).
constexpr double kStridedCycles = 1.5;
/// Sides of a product or channels of a convolution at which half of the rate is reached: priors.
constexpr double kHalfRows = 4, kHalfColumns = 16, kHalfDepth = 16, kHalfChannels = 4;
/// A thread of a product is worth opening for so many FLOPs: a prior.
constexpr double kProductGrain = 1e5;
/// oneDNN's dense convolutions reach so much of a large product's rate; those of few channels a group so
/// much less; depthwise ones are loops over rows. Priors.
constexpr double kConvolution = 0.85, kDepthwise = 0.2;
/// Row-major tensors are brought into blocks of channels before and back after (native/mkldnn/Conv.cpp):
/// each is read and written once more.
constexpr double kReorderPasses = 2;
constexpr double kReorderRegions = 3;
/// Attention's exponentials: instructions for a vector of scores.
constexpr double kScoreVectors = 30;
constexpr double kRecurrent = 0.3;  ///< of the rate: recurrent layers as one call, a prior
constexpr double kLongest = 86400;  ///< seconds; keeps absurd shapes finite

double real(std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 0)); }
double share(double n, double half) { return n / (n + half); }

/// Seconds that so many bytes take. A level serves what it holds; beyond, hits fall off with the square of the
/// size, as in kernels that pass over their data once or twice.
double memory_seconds(double bytes, const CpuRates& r, CpuData data) {
  if (bytes <= 0) return 0;
  const auto hits = [](double holds, double bytes_wanted) {
    return bytes_wanted <= holds ? 1.0 : (holds / bytes_wanted) * (holds / bytes_wanted);
  };
  double near = data == CpuData::kCold ? 0 : hits(kL2Share * r.l2_bytes, bytes);
  if (data == CpuData::kStep) near *= kStepNear;
  const double middle = hits(kL3Share * r.l3_bytes, bytes);
  const double beyond = middle / r.l3 + (1 - middle) / r.memory;
  return bytes * (near / r.l2 + (1 - near) * beyond);
}

double bytes_of(const Kernel& kernel) {
  return static_cast<double>((kernel.read + kernel.written).count());
}

CpuCost product_cost(const Kernel& kernel, const GemmShape& g, const CpuProcessor& cpu,
                     CpuData data) {
  const double flops = kernel.flops.count();
  const int threads =
      static_cast<int>(std::clamp(flops / kProductGrain, 1.0, static_cast<double>(cpu.threads())));
  const CpuRates& r = cpu.rates(threads);
  const double rate = r.products * cpu.peak(kernel.unit) * share(real(g.m), kHalfRows) *
                      share(real(g.n), kHalfColumns) * share(real(g.k), kHalfDepth);
  CpuCost cost;
  cost.compute = flops / std::max(rate, 1.0);
  cost.memory = memory_seconds(bytes_of(kernel), r, data);
  cost.rest = r.region;
  return cost;
}

CpuCost convolution_cost(const Kernel& kernel, const ConvolutionShape& c, const CpuProcessor& cpu,
                         CpuData data) {
  const CpuRates& r = cpu.rates();
  const double groups = std::max(1.0, real(c.groups));
  const double in = real(c.in_channels) / groups, out = real(c.out_channels) / groups;
  const bool depthwise = c.groups > 1 && c.groups == c.in_channels;
  const double efficiency =
      depthwise ? kDepthwise
                : kConvolution * share(in, kHalfChannels) * share(out, kHalfChannels);
  CpuCost cost;
  cost.compute =
      kernel.flops.count() / std::max(r.products * cpu.peak(kernel.unit) * efficiency, 1.0);
  const double bytes = bytes_of(kernel);
  cost.memory = memory_seconds(bytes, r, data);
  cost.rest = kReorderRegions * r.region;
  if (!c.channels_last) cost.rest += kReorderPasses * memory_seconds(bytes, r, data);
  return cost;
}

CpuCost attention_cost(const Kernel& kernel, const AttentionShape& a, const CpuProcessor& cpu,
                       CpuData data) {
  const CpuRates& r = cpu.rates();
  const double scores = real(a.batch) * real(a.heads) * real(a.query_length) *
                        real(a.key_length) * (a.causal ? 0.5 : 1);
  const double rate = r.products * cpu.peak(kernel.unit) * share(real(a.head_dim), kHalfDepth) *
                      share(real(a.key_length), kHalfColumns);
  CpuCost cost;
  cost.compute = kernel.flops.count() / std::max(rate, 1.0) +
                 scores * kScoreVectors / (r.lanes * r.cycles);
  cost.memory = memory_seconds(bytes_of(kernel), r, data);
  cost.rest = r.region;
  return cost;
}

CpuCost recurrent_cost(const Kernel& kernel, const CpuProcessor& cpu, CpuData data) {
  const CpuRates& r = cpu.rates();
  CpuCost cost;
  cost.compute = kernel.flops.count() / std::max(r.products * kRecurrent, 1.0);
  cost.memory = memory_seconds(bytes_of(kernel), r, data);
  cost.rest = r.region;
  return cost;
}

CpuCost element_cost(const Kernel& kernel, std::string_view name, const CpuProcessor& cpu,
                     CpuData data) {
  const CpuFunction function = cpu_function(name, kernel.kernel_class);
  const std::int64_t grain = function.grain > 0 ? function.grain : kGrain;
  const int threads = threads_for(kernel.elements, grain, cpu.threads());
  const CpuRates& r = cpu.rates(threads);
  const double elements = real(kernel.elements);
  // Pooling does its scalar work for each number of a window.
  const double steps = kernel.kernel_class == KernelClass::kPooling
                           ? std::max(elements, kernel.flops.count())
                           : elements;
  double cycles = elements * function.vectors / r.lanes + steps * function.scalars;
  const bool moves = kernel.kernel_class == KernelClass::kCopy ||
                     kernel.kernel_class == KernelClass::kElementwise;
  if (kernel.strided && moves) cycles += elements * kStridedCycles;
  CpuCost cost;
  cost.compute = cycles / r.cycles;
  cost.memory = memory_seconds(bytes_of(kernel), r, data);
  cost.rest = threads > 1 ? r.region : 0;
  cost.has_rule = kernel.kernel_class != KernelClass::kUncosted || has_cpu_function(name);
  return cost;
}

}  // namespace

int threads_for(std::int64_t elements, std::int64_t grain, int threads) {
  const std::int64_t grains = (std::max<std::int64_t>(elements, 1) + grain - 1) / grain;
  return static_cast<int>(std::clamp<std::int64_t>(grains, 1, std::max(1, threads)));
}

CpuProcessor::CpuProcessor(const Gpu& gpu, int threads) {
  for (int t = 1; t <= std::max(1, threads); ++t) rates_.push_back(cpu_rates(gpu, t));
  if (gpu.peak.bf16_tensor > 0 && gpu.peak.fp32 > 0) tensor_ = gpu.peak.bf16_tensor / gpu.peak.fp32;
}

const CpuRates& CpuProcessor::rates(int threads) const {
  return rates_[static_cast<std::size_t>(std::clamp(threads, 1, this->threads())) - 1];
}

/// FLOP/s over those of FP32.
double CpuProcessor::peak(MathUnit unit) const {
  switch (unit) {
    case MathUnit::kBf16Tensor:
    case MathUnit::kFp16Tensor:
      return tensor_;
    case MathUnit::kFp64:
      return 0.5;
    default:
      return 1;
  }
}

CpuCost cpu_cost(const Kernel& kernel, std::string_view function, const CpuProcessor& processor,
                 CpuData data) {
  CpuCost cost;
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    cost = product_cost(kernel, *gemm, processor, data);
  } else if (const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape)) {
    cost = convolution_cost(kernel, *convolution, processor, data);
  } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape)) {
    cost = attention_cost(kernel, *attention, processor, data);
  } else if (std::holds_alternative<RnnShape>(kernel.shape)) {
    cost = recurrent_cost(kernel, processor, data);
  } else {
    cost = element_cost(kernel, function, processor, data);
  }
  for (double* part : {&cost.compute, &cost.memory, &cost.rest}) {
    if (!std::isfinite(*part)) *part = kLongest;
    *part = std::clamp(*part, 0.0, kLongest);
  }
  return cost;
}

}  // namespace stoker
