#include "timing/cpu/cpu_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "lower/cpu/cpu_convolution.h"
#include "operators/cpu_functions.h"

namespace stoker {
namespace {

constexpr std::int64_t kGrain = 32768;  ///< at::internal::GRAIN_SIZE (ATen/TensorIterator.h)
/// Share of a core's second-level cache that one operator's data can count on: a prior.
constexpr double kL2Share = 0.7;
/// What of an operator's data a step leaves in that cache where it is smaller than kSmall bytes,
/// and what comes from memory at least of the rest. By operators of five networks, timed alone with
/// emptied caches and in loops, against their steps: the former add up to 0.9-1.1 of the step, the
/// latter to 0.75-0.9.
constexpr double kStepNear = 0.5, kSmall = 256 * 1024, kStepFar = 0.5;
constexpr double kUpdateNear = 0.5;
/// Memory that is written where it was read is not fetched for the writing: two passes instead of
/// three.
constexpr double kInPlace = 1.5;
/// Share of the last-level cache, which others use too, that counts. By the optimizers of networks
/// of 3 to 15 MiB of weights on two virtual cores of a processor that has 260 MiB.
constexpr double kL3Share = 0.18;
/// An optimizer comes back to the same tensors with a few operators in a row.
constexpr double kUpdateSet = 2;
/// Copies across rows take so many cycles an element where vectors cannot serve (heads of
/// attention).
constexpr double kStridedCycles = 0.6;
/// Sides of a product at which half of the rate is reached: priors.
constexpr double kHalfRows = 4, kHalfColumns = 16, kHalfDepth = 16;
/// A thread of a product is worth opening for so many FLOPs: a prior.
constexpr double kProductGrain = 1e5;

// Convolutions, by 400 rows on one core with vectors of 512 bits. oneDNN pads channels to whole
// vectors and then reaches what products reach; the first layer's few channels stay as they are and
// are fed worse.
constexpr double kDense = 0.97, kFewChannels = 0.75, kGrouped = 0.75;
constexpr std::int64_t kFew = 4;
constexpr double kWeightPass = 0.93;    ///< gradients of weights
constexpr double kStridedInput = 0.62;  ///< gradients of inputs through a stride
constexpr double kHalfWidth = 0.5;      ///< width of a row at which half of the rate is reached
/// Tensors are brought into blocks of channels before and back after, and read and written between.
constexpr double kReorders = 2.2, kReordersOfOneTap = 3, kReordersOfDepthwise = 3;
constexpr double kReorderRegions = 3;
/// Looking up the primitive, and the reorders' own, a call. Forward, input, weight.
constexpr std::array<Seconds, 3> kConvolutionCall{Seconds(70e-6), Seconds(75e-6), Seconds(85e-6)};
/// Depthwise, of the rate of products: forward, input, weight; filters of 3x3, larger ones.
constexpr std::array<double, 3> kDepthwise3{0.22, 0.16, 0.11}, kDepthwise5{0.34, 0.2, 0.018};
constexpr double kDepthwiseStride = 0.65, kDepthwiseStrideInput = 0.5;
/// ATen's own loops over images, each a product of columns (native/ConvolutionMM2d.cpp).
constexpr double kOwn = 1, kOwnHalfPixels = 8, kOwnHalfIn = 16, kOwnHalfOut = 8;
/// Attention's exponentials: instructions for a vector of scores.
constexpr double kScoreVectors = 50;
/// Recurrent layers as one call: their products reach so much of the rate, half of that at so many
/// rows. Gates take so many instructions a vector of them, forward and backward, and each time step
/// opens a region a product (LSTMs of 28 to 512 inputs and 64 to 512 units, 8 to 256 rows, PyTorch
/// 2.14.1, one and two threads, AVX-512).
constexpr double kRecurrent = 0.93, kRecurrentRows = 4;
constexpr std::array<double, 2> kGateVectors{65, 150};
constexpr Seconds kLongest{86400};  ///< keeps absurd shapes finite

double real(std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(n, 0)); }
double share(double n, double half) { return n / (n + half); }

double hits(double holds, double bytes) {
  return bytes <= holds ? 1.0 : (holds / bytes) * (holds / bytes);
}

/// Where bytes come from: shares of the second-level cache and of memory; the rest is the
/// last-level cache's.
struct Shares {
  double near = 0, far = 0;
};

/// A level serves what it holds; beyond, hits fall off with the square of the size, as in kernels
/// that pass over their data once or twice. `kept`: how much else is touched until the same bytes
/// come again.
Shares shares_of(double footprint, double kept, const CpuRates& r) {
  return {hits(kL2Share * r.l2_bytes, footprint),
          1 - hits(kL3Share * r.l3_bytes, std::max(footprint, kept))};
}

void add_traffic(double bytes, const Shares& shares, double gain, const CpuRates& r,
                 CpuCost& cost) {
  if (bytes <= 0) return;
  const double beyond = (1 - shares.far) / r.l3 + shares.far / (gain * r.memory);
  cost.memory += Seconds(bytes * (shares.near / r.l2 + (1 - shares.near) * beyond));
  cost.near += bytes * shares.near;
  cost.far += bytes * (1 - shares.near) * shares.far;
  cost.bytes += bytes;
}

/// In a step what an operator reads and writes was touched long ago, or is new: its data lies in
/// the second-level cache only where it is small, and of what is beyond at least half comes from
/// memory.
Shares step_shares(double footprint, const CpuRates& r, const CpuSurroundings& where) {
  const double kept = shares_of(footprint, where.step_bytes, r).far;
  return {kStepNear * hits(kSmall, footprint), std::max(kStepFar, kept)};
}

Shares shares_at(double footprint, const CpuRates& r, const CpuSurroundings& where) {
  if (where.data == CpuData::kCold) return {0, 1};
  if (where.data == CpuData::kStep) return step_shares(footprint, r, where);
  return shares_of(footprint, 0, r);
}

/// Operands and results alike, as in products and convolutions.
void add_operands(double bytes, const CpuRates& r, const CpuSurroundings& where, CpuCost& cost) {
  add_traffic(bytes, shares_at(bytes, r, where), 1, r, cost);
}

/// What moves bytes. The optimizer comes back to a tensor with the next operators, and finds of it
/// what a whole step has left.
void add_streams(const Kernel& kernel, bool in_place, const CpuRates& r,
                 const CpuSurroundings& where, CpuCost& cost) {
  const auto read = static_cast<double>(kernel.read.count());
  const auto written = static_cast<double>(kernel.written.count());
  const double footprint = in_place ? read : read + written;
  Shares shares = shares_at(footprint, r, where);
  if (where.data == CpuData::kStep && where.phase == StepPhase::kOptimizer) {
    shares = {kUpdateNear * hits(kL2Share * r.l2_bytes, kUpdateSet * footprint),
              shares_of(footprint, where.step_bytes, r).far};
  }
  add_traffic(read + written, shares, in_place ? kInPlace : 1, r, cost);
}

double bytes_of(const Kernel& kernel) {
  return static_cast<double>((kernel.read + kernel.written).count());
}

CpuCost product_cost(const Kernel& kernel, const GemmShape& g, const CpuProcessor& cpu,
                     const CpuSurroundings& where) {
  const double flops = kernel.flops.count();
  const int threads =
      static_cast<int>(std::clamp(flops / kProductGrain, 1.0, static_cast<double>(cpu.threads())));
  const CpuRates& r = cpu.rates(threads);
  const double rate = r.products * cpu.peak(kernel.unit) * share(real(g.m), kHalfRows) *
                      share(real(g.n), kHalfColumns) * share(real(g.k), kHalfDepth);
  CpuCost cost;
  cost.compute = Seconds(flops / std::max(rate, 1.0));
  add_operands(bytes_of(kernel), r, where, cost);
  cost.rest = r.region;
  return cost;
}

double in_blocks(std::int64_t channels, double lanes) {
  return lanes * std::ceil(real(channels) / lanes);
}

/// Vector by vector along rows, no sums over channels.
Seconds depthwise_time(const Kernel& kernel, const ConvolutionShape& c, double rate) {
  const auto pass = static_cast<std::size_t>(c.pass);
  const bool large = c.kernel[0] * c.kernel[1] * c.kernel[2] > 9;
  double efficiency = large ? kDepthwise5[pass] : kDepthwise3[pass];
  if (c.stride[0] > 1)
    efficiency *= c.pass == Pass::kBackwardInput ? kDepthwiseStrideInput : kDepthwiseStride;
  return Seconds(kernel.flops.count() / (rate * efficiency));
}

Seconds dense_time(const Kernel& kernel, const ConvolutionShape& c, const CpuRates& r,
                   double rate) {
  const auto groups = std::max<std::int64_t>(1, c.groups);
  const std::int64_t in = c.in_channels / groups, out = c.out_channels / groups;
  const bool few = in <= kFew && groups == 1;
  const double padded = (few ? real(in) : in_blocks(in, r.lanes)) * in_blocks(out, r.lanes) /
                        std::max(1.0, real(in) * real(out));
  double efficiency = groups > 1 ? kGrouped : few ? kFewChannels : kDense;
  if (c.pass == Pass::kBackwardWeight) efficiency *= kWeightPass;
  if (c.pass == Pass::kBackwardInput && c.stride[0] > 1) efficiency *= kStridedInput;
  const std::size_t last = static_cast<std::size_t>(std::clamp(c.spatial, 1, 3) - 1);
  efficiency *= share(real(c.out[last]), kHalfWidth);
  return Seconds(kernel.flops.count() * padded / (rate * efficiency));
}

CpuCost convolution_cost(const Kernel& kernel, const ConvolutionShape& c, const CpuProcessor& cpu,
                         const CpuSurroundings& where) {
  const CpuRates& r = cpu.rates();
  const double rate = std::max(r.products * cpu.peak(kernel.unit), 1.0);
  const double bytes = bytes_of(kernel);
  CpuCost cost;
  if (kernel.dtype == DType::kF32 && !onednn_takes(c, cpu.threads())) {
    const double pixels = real(c.out[0]) * real(c.out[1]) * real(c.out[2]);
    cost.compute = Seconds(kernel.flops.count() / (rate * kOwn * share(pixels, kOwnHalfPixels) *
                                                   share(real(c.in_channels), kOwnHalfIn) *
                                                   share(real(c.out_channels), kOwnHalfOut)));
    add_operands(bytes, r, where, cost);
    cost.rest = r.region;
    return cost;
  }
  const bool depthwise = c.groups > 1 && c.groups == c.in_channels;
  const bool one_tap = c.kernel[0] * c.kernel[1] * c.kernel[2] == 1;
  cost.compute = depthwise ? depthwise_time(kernel, c, rate) : dense_time(kernel, c, r, rate);
  cost.rest = kReorderRegions * r.region + kConvolutionCall[static_cast<std::size_t>(c.pass)];
  const double passes = c.channels_last ? 1
                        : depthwise     ? kReordersOfDepthwise
                        : one_tap       ? kReordersOfOneTap
                                        : kReorders;
  add_operands(bytes, r, where, cost);
  cost.rest += passes * cost.memory;
  cost.memory = Seconds(0);
  return cost;
}

CpuCost attention_cost(const Kernel& kernel, const AttentionShape& a, const CpuProcessor& cpu,
                       const CpuSurroundings& where) {
  const CpuRates& r = cpu.rates();
  const double all = real(a.query_length) * real(a.key_length);
  const double seen = a.windowed() ? a.pairs() : a.causal ? 0.5 * all : all;
  const double scores = real(a.batch) * real(a.heads) * seen;
  const double rate = r.products * cpu.peak(kernel.unit) * share(real(a.head_dim), kHalfDepth) *
                      share(real(a.key_length), kHalfColumns);
  CpuCost cost;
  cost.compute = Seconds(kernel.flops.count() / std::max(rate, 1.0) +
                         scores * kScoreVectors / (r.lanes * r.cycles));
  add_operands(bytes_of(kernel), r, where, cost);
  cost.rest = r.region;
  return cost;
}

CpuCost recurrent_cost(const Kernel& kernel, const RnnShape& shape, const CpuProcessor& cpu,
                       const CpuSurroundings& where) {
  const CpuRates& r = cpu.rates();
  const double gates =
      real(shape.batch) * real(shape.length) * real(shape.gates) * real(shape.hidden);
  const double vectors = kGateVectors[shape.backward ? 1 : 0];
  const double products_a_step = shape.backward ? 2 : 1;
  CpuCost cost;
  cost.compute = Seconds(
      kernel.flops.count() /
          std::max(r.products * kRecurrent * share(real(shape.batch), kRecurrentRows), 1.0) +
      gates * vectors / (r.lanes * r.cycles));
  add_operands(bytes_of(kernel), r, where, cost);
  cost.rest = r.region * (products_a_step * real(shape.length));
  return cost;
}

CpuCost element_cost(const Kernel& kernel, std::string_view name, const CpuProcessor& cpu,
                     const CpuSurroundings& where) {
  const CpuUse function = cpu_use(name, kernel.kernel_class);
  const std::int64_t grain = function.grain > 0 ? function.grain : kGrain;
  const int threads = threads_for(kernel.elements, grain, cpu.threads());
  const CpuRates& r = cpu.rates(threads);
  const double elements = real(kernel.elements);
  // Pooling does its scalar work for each number of a window.
  const double steps = kernel.kernel_class == KernelClass::kPooling
                           ? std::max(elements, kernel.flops.count())
                           : elements;
  double cycles = elements * function.vectors / r.lanes + steps * function.scalars;
  const bool moves =
      kernel.kernel_class == KernelClass::kCopy || kernel.kernel_class == KernelClass::kElementwise;
  if (kernel.strided && moves) cycles += elements * kStridedCycles;
  CpuCost cost;
  cost.compute = Seconds(cycles / r.cycles);
  // In place, results lie where operands lay.
  add_streams(kernel, name.ends_with('_'), r, where, cost);
  cost.rest = (threads > 1 ? r.region : Seconds(0)) + as_seconds(Micros(function.call_us));
  cost.has_rule = kernel.kernel_class != KernelClass::kUncosted || has_cpu_function(name);
  return cost;
}

}  // namespace

int threads_for(std::int64_t elements, std::int64_t grain, int threads) {
  const std::int64_t grains = (std::max<std::int64_t>(elements, 1) - 1) / grain + 1;
  return static_cast<int>(std::clamp<std::int64_t>(grains, 1, std::max(1, threads)));
}

CpuProcessor::CpuProcessor(const Cpu& cpu, int threads) {
  for (int t = 1; t <= std::max(1, threads); ++t) rates_.push_back(cpu_rates(cpu, t));
  if (cpu.peak.bf16_tensor > 0 && cpu.peak.fp32 > 0) tensor_ = cpu.peak.bf16_tensor / cpu.peak.fp32;
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
                 const CpuSurroundings& where) {
  CpuCost cost;
  if (const auto* gemm = std::get_if<GemmShape>(&kernel.shape)) {
    cost = product_cost(kernel, *gemm, processor, where);
  } else if (const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape)) {
    cost = convolution_cost(kernel, *convolution, processor, where);
  } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.shape)) {
    cost = attention_cost(kernel, *attention, processor, where);
  } else if (const auto* recurrent = std::get_if<RnnShape>(&kernel.shape)) {
    cost = recurrent_cost(kernel, *recurrent, processor, where);
  } else {
    cost = element_cost(kernel, function, processor, where);
  }
  for (Seconds* part : {&cost.compute, &cost.memory, &cost.rest}) {
    if (!std::isfinite(part->count())) *part = kLongest;
    *part = std::clamp(*part, Seconds(0), kLongest);
  }
  return cost;
}

}  // namespace stoker
