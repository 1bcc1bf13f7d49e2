#include <algorithm>
#include <cmath>

#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

/// Lanes of a tile that a group narrower than this leaves idle.
constexpr double kFullGroupWidth = 32;
/// Grouped convolution in half precision: its rate goes with this power of a group's width, fitted
/// to RTX 3090 rows of widths 2 to 232 like the factors below (docs/models/time.md).
constexpr double kGroupWidthPower = 0.75, kNhwcGroupWidthPower = 0.6;
constexpr double kOddGroupWidth = 1.3;  ///< slower where the width is no power of two
/// In channels-last few groups fall to a slow path, and so do other kernels than 3x3. Means again;
/// single values range over 1.5-3.5, hence the class's wide spread.
constexpr double kNhwcFewGroups = 6, kNhwcOtherTaps = 3;
constexpr double kManyGroups = 16;
/// PyTorch's own depthwise weight gradient in nchw: 55-70 times its FP32 arithmetic, and channels x
/// taps below 16 per SM leave SMs idle (RTX 3090 rows).
constexpr double kDepthwiseWeightMultiple = 60, kDepthwiseWeightPerSm = 16;
/// More than in proportion to the taps, against 3x3.
constexpr double kDepthwiseWeightTapsPower = 0.4;

/// Winograd's filter transform, in units of what its bytes would take: short strided rows of 3x3
/// taps (fitted on rows with few pixels and many channels).
constexpr double kFilterTransform = 8;

/// Part of the activations that TF32 convolutions in nchw transpose: cuDNN has TF32 kernels that
/// read nchw, and ResNet-50's published TF32 throughput on five GPUs lies half-way between all and
/// none (docs/models/time.md).
constexpr double kTf32Transposed = 0.5;

constexpr double kPictureChannels = 4;

/// Everything a rule needs, with transposed convolutions turned into the ordinary one that they
/// mirror.
struct Geometry {
  double batch, groups, in_width, out_width;  ///< channels of one group
  double in_pixels, out_pixels, taps, strides;
  bool plain_3x3;  ///< Winograd applies: 2D, 3x3, stride and dilation 1, one group
  bool channels_last;
  Pass pass;

  [[nodiscard]] double flops() const {
    return 2 * batch * out_pixels * groups * in_width * out_width * taps;
  }
  [[nodiscard]] double in_elements() const { return batch * in_pixels * groups * in_width; }
  [[nodiscard]] double out_elements() const { return batch * out_pixels * groups * out_width; }
};

double product(const std::array<std::int64_t, 3>& a) {
  return static_cast<double>(a[0]) * static_cast<double>(a[1]) * static_cast<double>(a[2]);
}

Geometry geometry_of(const ConvolutionShape& s) {
  const double groups = static_cast<double>(std::max<std::int64_t>(1, s.groups));
  Geometry g{};
  g.batch = static_cast<double>(s.batch);
  g.groups = groups;
  g.in_width = static_cast<double>(s.in_channels) / groups;
  g.out_width = static_cast<double>(s.out_channels) / groups;
  g.in_pixels = product(s.in);
  g.out_pixels = product(s.out);
  g.taps = product(s.kernel);
  g.strides = std::max(1.0, product(s.stride));
  g.channels_last = s.channels_last;
  g.pass = s.pass;
  g.plain_3x3 = s.spatial == 2 && groups == 1 && product(s.stride) == 1 &&
                product(s.dilation) == 1 && g.taps == 9 &&
                std::count(s.kernel.begin(), s.kernel.end(), 3) == 2;
  if (s.transposed) {
    std::swap(g.in_width, g.out_width);
    std::swap(g.in_pixels, g.out_pixels);
    if (s.pass == Pass::kForward) g.pass = Pass::kBackwardInput;
    if (s.pass == Pass::kBackwardInput) g.pass = Pass::kForward;
  }
  return g;
}

Tiling implicit_gemm(const Geometry& g, bool tensor) {
  // cuDNN splits the reduction of weight gradients, whose k is long, but not that of FP32 forward
  // kernels.
  Tiling t{.tensor = tensor, .split_k = tensor || g.pass == Pass::kBackwardWeight};
  t.batch = g.groups;
  switch (g.pass) {
    case Pass::kForward:
      t.m = g.batch * g.out_pixels, t.n = g.out_width, t.k = g.in_width * g.taps;
      break;
    case Pass::kBackwardInput:
      // With a stride each input pixel sees only taps / strides outputs.
      t.m = g.batch * g.in_pixels, t.n = g.in_width,
      t.k = std::max(1.0, g.out_width * g.taps / g.strides);
      break;
    case Pass::kBackwardWeight:
      t.m = g.out_width, t.n = g.in_width * g.taps, t.k = g.batch * g.out_pixels;
      break;
  }
  return t;
}

/// Winograd with output tiles of side `tile`: (tile + 2)^2 products of [pixels / tile^2, C] x [C,
/// K]. Non-fused, its transformed operands go through memory (elements of 4 bytes, written and
/// read).
struct Winograd {
  Seconds compute;
  double activations, filter;
};
Winograd winograd(const Geometry& g, double tile, double rate, const GpuRates& device,
                  const KernelCoefficients& coefficients) {
  const double points = (tile + 2) * (tile + 2);
  const double side = std::sqrt(g.out_pixels);
  const double patches = g.batch * std::ceil(side / tile) * std::ceil(side / tile);
  Tiling t{.m = patches, .n = g.out_width, .k = g.in_width, .batch = points};
  if (g.pass == Pass::kBackwardInput) std::swap(t.n, t.k);
  if (g.pass == Pass::kBackwardWeight) {
    t = {.m = g.out_width, .n = g.in_width, .k = patches, .batch = points};
  }
  t.split_k = g.pass == Pass::kBackwardWeight;
  return {best_tile(t, rate, device, coefficients).time,
          2 * points * patches * (g.in_width + g.out_width), 2 * points * g.in_width * g.out_width};
}

/// Channels that one 16-byte access holds.
double lanes_of(const Kernel& kernel) { return 16.0 / static_cast<double>(size_of(kernel.dtype)); }

bool is_multiple(double value, double of) { return std::fmod(value, of) == 0; }

/// cuDNN's tensor-core kernels work on whole 16-byte accesses of channels; images of up to four
/// channels have kernels of their own in channels-last.
double padded(double width, double lanes, bool channels_last) {
  if (channels_last && width <= kPictureChannels) return kPictureChannels;
  return std::ceil(width / lanes) * lanes;
}

/// Multiple of the ideal that tensor-core tiles of unaligned channels take.
double alignment_penalty(const Geometry& g, double lanes, const KernelCoefficients& coefficients) {
  if (!g.channels_last) return 1;  // the transposes pad
  const auto fits = [&](double width) {
    return width <= kPictureChannels || is_multiple(width, lanes);
  };
  return fits(g.in_width) && fits(g.out_width) ? 1 : 1 / coefficients.unaligned_convolution;
}

CostClass dense_class(Pass pass, bool tensor) {
  switch (pass) {
    case Pass::kForward:
      return tensor ? CostClass::kTensorConvolution : CostClass::kConvolution;
    case Pass::kBackwardInput:
      return tensor ? CostClass::kTensorConvolutionInput : CostClass::kConvolutionInput;
    case Pass::kBackwardWeight:
      break;
  }
  return tensor ? CostClass::kTensorConvolutionWeight : CostClass::kConvolutionWeight;
}

RawCost dense_cost(const Kernel& kernel, const Geometry& g, const GpuRates& device,
                   const Coefficients& coefficients) {
  const auto unit = static_cast<std::size_t>(kernel.unit);
  const bool tensor = device.tensor[unit];
  const double rate = device.rate[unit];
  RawCost cost;
  cost.cost_class = dense_class(g.pass, tensor);
  Geometry tiled = g;
  double penalty = 1;
  if (tensor) {
    const double lanes = lanes_of(kernel);
    tiled.in_width = padded(g.in_width, lanes, g.channels_last);
    tiled.out_width = padded(g.out_width, lanes, g.channels_last);
    penalty = alignment_penalty(g, lanes, coefficients.kernel);
  }
  cost.compute = penalty *
                 best_tile(implicit_gemm(tiled, tensor), rate, device, coefficients.kernel).time /
                 coefficients.of(cost.cost_class).compute;
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  if (tensor && !g.channels_last) {
    // Tensor-core kernels want channels-last: cuDNN transposes both activations, in and out.
    const double share = kernel.unit == MathUnit::kTf32Tensor ? kTf32Transposed : 1;
    const double bytes = share * 2 * size_of(kernel.dtype) * (g.in_elements() + g.out_elements());
    cost.latency = memory_time(bytes, CostClass::kLayoutTranspose, device, coefficients) +
                   as_seconds(2 * coefficients.kernel.launch);
  }
  if (!tensor && g.plain_3x3 && kernel.unit == MathUnit::kFp32) {
    const double efficiency = coefficients.of(CostClass::kWinograd).compute;
    const Winograd fused = winograd(g, 2, rate, device, coefficients.kernel);
    const Winograd staged = winograd(g, 4, rate, device, coefficients.kernel);
    const Seconds staged_memory =
        memory_time(4 * (staged.activations + kFilterTransform * staged.filter),
                    CostClass::kWinograd, device, coefficients);
    const Seconds fused_filter = memory_time(4 * kFilterTransform * fused.filter,
                                             CostClass::kWinograd, device, coefficients);
    const Seconds direct = std::max(cost.compute, cost.memory);
    const Seconds fused_time = std::max(fused.compute / efficiency, cost.memory) + fused_filter;
    const Seconds staged_time = staged.compute / efficiency + staged_memory;
    if (fused_time < direct && fused_time <= staged_time && g.pass != Pass::kBackwardWeight) {
      cost.cost_class = CostClass::kWinograd;
      cost.compute = fused.compute / efficiency;
      cost.latency = fused_filter;
    } else if (staged_time < direct) {
      cost.cost_class = CostClass::kWinograd;
      cost.compute = staged.compute / efficiency;
      cost.memory = Seconds(0);
      cost.latency = staged_memory;
    }
  }
  return cost;
}

/// Relative to groups of the full width; above it, tensor cores come in.
double half_group_rate(const Geometry& g, double width) {
  const double power = g.channels_last ? kNhwcGroupWidthPower : kGroupWidthPower;
  double rate = std::pow(std::max(1.0, width) / kFullGroupWidth, power);
  if (std::exp2(std::round(std::log2(std::max(1.0, width)))) != width) rate /= kOddGroupWidth;
  if (g.channels_last && g.groups < kManyGroups) rate /= kNhwcFewGroups;
  if (g.channels_last && g.taps != 9) rate /= kNhwcOtherTaps;
  return rate;
}

RawCost grouped_cost(const Kernel& kernel, const Geometry& g, const GpuRates& device,
                     const Coefficients& coefficients) {
  RawCost cost;
  cost.cost_class =
      g.channels_last ? CostClass::kGroupedConvolutionNhwc : CostClass::kGroupedConvolution;
  const double width = std::min(g.in_width, g.out_width);
  double rate = device.rate[static_cast<std::size_t>(MathUnit::kFp32)] *
                coefficients.of(cost.cost_class).compute;
  if (device.tensor[static_cast<std::size_t>(kernel.unit)]) {
    rate *= half_group_rate(g, width);
  } else {
    rate *= std::min(1.0, width / kFullGroupWidth);
  }
  cost.compute = Seconds(g.flops() / rate);
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  return cost;
}

RawCost depthwise_cost(const Kernel& kernel, const Geometry& g, const GpuRates& device,
                       const Coefficients& coefficients) {
  RawCost cost;
  const bool weight = g.pass == Pass::kBackwardWeight;
  cost.cost_class = g.channels_last
                        ? (weight ? CostClass::kDepthwiseWeightNhwc : CostClass::kDepthwiseNhwc)
                        : (weight ? CostClass::kDepthwiseWeight : CostClass::kDepthwise);
  const double rate = device.rate[static_cast<std::size_t>(MathUnit::kFp32)];
  cost.compute = Seconds(g.flops() / (rate * coefficients.of(cost.cost_class).compute));
  if (weight && !g.channels_last) {
    const double blocks = g.groups * g.out_width * g.taps;
    const double slower =
        kDepthwiseWeightMultiple *
        std::max(1.0, kDepthwiseWeightPerSm * device.sms / std::max(1.0, blocks)) *
        std::pow(std::max(1.0, g.taps / 9), kDepthwiseWeightTapsPower);
    cost.compute = slower * cost.compute;
  }
  cost.memory = memory_time(bytes_of(kernel), cost.cost_class, device, coefficients);
  const bool half = size_of(kernel.dtype) == 2;
  if (half && g.channels_last && !weight && !is_multiple(g.groups, lanes_of(kernel)))
    cost.memory = cost.memory / coefficients.kernel.unaligned_depthwise;
  return cost;
}

}  // namespace

RawCost convolution_cost(const Kernel& kernel, const ConvolutionShape& shape,
                         const GpuRates& device, const Coefficients& coefficients) {
  const Geometry g = geometry_of(shape);
  if (g.groups <= 1) return dense_cost(kernel, g, device, coefficients);
  if (g.in_width <= 1) return depthwise_cost(kernel, g, device, coefficients);
  return grouped_cost(kernel, g, device, coefficients);
}

}  // namespace stoker
