#include "timing/learned/residual_features.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/text.h"
#include "timing/common/data_sheet.h"
#include "timing/gpu/cost_rules.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 8> kGpuNames{"gpu_rate", "gpu_bandwidth", "gpu_balance",
                                                    "gpu_sms",  "gpu_lanes",     "gpu_l2",
                                                    "gpu_cap",  "gpu_capability"};

/// Output tiles of FP32 kernels that libraries have; what a tile pads and how its waves come out
/// tells which of them was taken.
struct FeatureTile {
  int m, n;
};
constexpr std::array kFeatureTiles{
    FeatureTile{256, 128}, FeatureTile{128, 128}, FeatureTile{128, 64}, FeatureTile{64, 128},
    FeatureTile{64, 64},   FeatureTile{32, 128},  FeatureTile{128, 32}, FeatureTile{32, 32}};

constexpr std::array<std::string_view, 46> kGemmNames{"m",
                                                      "n",
                                                      "k",
                                                      "batch",
                                                      "flops",
                                                      "memory_over_compute",
                                                      "plain",
                                                      "bytes_over_l2",
                                                      "first_over_l2",
                                                      "second_over_l2",
                                                      "transpose_a",
                                                      "transpose_b",
                                                      "align_m",
                                                      "align_n",
                                                      "align_k",
                                                      "tile",
                                                      "waves",
                                                      "splits",
                                                      "pad_256x128",
                                                      "pad_128x128",
                                                      "pad_128x64",
                                                      "pad_64x128",
                                                      "pad_64x64",
                                                      "pad_32x128",
                                                      "pad_128x32",
                                                      "pad_32x32",
                                                      "tail_256x128",
                                                      "tail_128x128",
                                                      "tail_128x64",
                                                      "tail_64x128",
                                                      "tail_64x64",
                                                      "tail_32x128",
                                                      "tail_128x32",
                                                      "tail_32x32",
                                                      "blocks_128x128",
                                                      "blocks_32x32",
                                                      "k_over_tile",
                                                      "m_over_n",
                                                      "time_256x128",
                                                      "time_128x128",
                                                      "time_128x64",
                                                      "time_64x128",
                                                      "time_64x64",
                                                      "time_32x128",
                                                      "time_128x32",
                                                      "time_32x32"};
constexpr std::array<std::string_view, 9> kElementwiseNames{"elements",
                                                            "bytes",
                                                            "plain",
                                                            "bytes_over_l2",
                                                            "read_over_written",
                                                            "bytes_per_element",
                                                            "flops_per_element",
                                                            "align",
                                                            "tail"};
constexpr std::array<std::string_view, 13> kRowNames{
    "rows",     "width",       "bytes",     "plain",       "bytes_over_l2", "read_over_written",
    "is_norm",  "align_width", "pad_width", "rows_per_sm", "tail",          "warps_width",
    "row_bytes"};
constexpr std::array<std::string_view, 36> kConvolutionNames{"batch",
                                                             "in_channels",
                                                             "out_channels",
                                                             "side",
                                                             "flops",
                                                             "plain",
                                                             "direct",
                                                             "fused_over_direct",
                                                             "staged_over_direct",
                                                             "memory_over_direct",
                                                             "staging_over_direct",
                                                             "fft16_over_direct",
                                                             "fft32_over_direct",
                                                             "bytes_over_l2",
                                                             "input_over_l2",
                                                             "output_over_l2",
                                                             "filter_over_l2",
                                                             "staged_over_l2",
                                                             "align_in",
                                                             "align_out",
                                                             "odd_side",
                                                             "pad_f2",
                                                             "pad_f4",
                                                             "pad_128x128",
                                                             "pad_128x64",
                                                             "pad_64x64",
                                                             "pad_32x32",
                                                             "tail_128x128",
                                                             "tail_128x64",
                                                             "tail_64x64",
                                                             "tail_32x32",
                                                             "blocks_128x128",
                                                             "blocks_32x32",
                                                             "fused_blocks",
                                                             "in_over_out",
                                                             "taps_of_k"};

template <std::size_t N>
constexpr std::array<std::string_view, N + kGpuNames.size()> with_gpu(
    const std::array<std::string_view, N>& own) {
  std::array<std::string_view, N + kGpuNames.size()> all{};
  std::copy(own.begin(), own.end(), all.begin());
  std::copy(kGpuNames.begin(), kGpuNames.end(), all.begin() + N);
  return all;
}
constexpr auto kGemmAll = with_gpu(kGemmNames);
constexpr auto kElementwiseAll = with_gpu(kElementwiseNames);
constexpr auto kRowAll = with_gpu(kRowNames);
constexpr auto kConvolutionAll = with_gpu(kConvolutionNames);
static_assert(kGemmAll.size() <= kMostFeatures && kConvolutionAll.size() <= kMostFeatures);

/// Appends to the features of one kernel.
class Writer {
 public:
  explicit Writer(ResidualInput& input) : input_(input) {}
  void add(double value) { input_.features[count_++] = static_cast<float>(value); }
  void add_log(double value) { add(std::log2(std::max(value, 1e-30))); }

 private:
  ResidualInput& input_;
  std::size_t count_ = 0;
};

/// Coefficients of the plain rules: nothing fitted, and apart from the built-in priors, which may
/// change without the trees.
Coefficients plain_coefficients() {
  Coefficients c;
  for (auto& entry : c.classes) entry = {1, 1, 0};
  c.kernel = {};
  c.kernel.l2_speedup = 2;
  c.kernel.l2_share = 0.6;
  c.kernel.tile_prologue = 16;
  c.kernel.lone_block = 0.65;
  c.power = {.share = 0.85, .pj_28nm = 30, .pj_16nm = 14, .pj_7nm = 6.5, .pj_5nm = 4.2};
  return c;
}

const Coefficients& plain() {
  static const Coefficients kCoefficients = plain_coefficients();
  return kCoefficients;
}

/// The largest power of two up to 64 that divides it, as a logarithm.
double alignment(std::int64_t size) {
  return std::log2(static_cast<double>(std::gcd(size, std::int64_t{64})));
}

/// Blocks of an output that tiles cover, what they pad it by and how much of the last wave idles.
struct Cover {
  double blocks, pad, tail;
};
Cover cover(double m, double n, double batch, const FeatureTile& tile, double sms) {
  const double rows = std::ceil(m / tile.m), columns = std::ceil(n / tile.n);
  const double waves = batch * rows * columns / sms;
  return {waves, rows * tile.m * columns * tile.n / (m * n), std::ceil(waves) / waves};
}

double l2_of(const GpuRates& device) { return std::max(device.l2_bytes, 1024.0); }

std::uint64_t shape_hash(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += std::to_string(size) + ' ';
  // FNV-1a alone spreads neighbours badly over remainders of 5; these are the last steps of
  // SplitMix64.
  std::uint64_t hash = fnv1a(text);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

void gemm_features(const Kernel& kernel, const GemmShape& s, const GpuRates& device,
                   ResidualInput& out) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n),
               k = static_cast<double>(s.k), batch = static_cast<double>(s.batch);
  const double rate = device.rate[0], flops = 2 * m * n * k * batch;
  const bool untransposed = !s.transpose_a && !s.transpose_b;
  const TileChoice choice = best_tile({.m = m,
                                       .n = n,
                                       .k = k,
                                       .batch = batch,
                                       .split_k = !untransposed,
                                       .measured = is_measured(s, false),
                                       .untransposed = untransposed},
                                      rate, device, plain().kernel);
  const double bytes = 4 * batch * (m * k + k * n + m * n);
  const Seconds memory = memory_time(bytes_of(kernel), CostClass::kGemm, device, plain());
  out.plain = std::max(choice.time, memory);
  out.shape = shape_hash({s.batch, s.m, s.n, s.k});
  const double l2 = l2_of(device);
  Writer w(out);
  for (const double size :
       {m, n, k, batch, flops, memory.count() / (flops / rate), out.plain.count(), bytes / l2,
        4 * batch * m * k / l2, 4 * batch * k * n / l2})
    w.add_log(size);
  w.add(s.transpose_a), w.add(s.transpose_b);
  for (const std::int64_t size : {s.m, s.n, s.k}) w.add(alignment(size));
  w.add_log(static_cast<double>(choice.tile_m) * choice.tile_n);
  w.add_log(choice.waves), w.add(choice.splits);
  std::array<Cover, kFeatureTiles.size()> covers{};
  for (std::size_t i = 0; i < covers.size(); ++i)
    covers[i] = cover(m, n, batch, kFeatureTiles[i], device.sms);
  for (const Cover& c : covers) w.add_log(c.pad);
  for (const Cover& c : covers) w.add_log(c.tail);
  w.add_log(covers[1].blocks), w.add_log(covers.back().blocks);
  w.add_log(k * choice.splits / (choice.tile_m + choice.tile_n)), w.add_log(m / n);
  // What the product would take in whole waves of each tile.
  for (std::size_t i = 0; i < covers.size(); ++i)
    w.add_log(std::ceil(covers[i].blocks) * 2 * kFeatureTiles[i].m * kFeatureTiles[i].n * k *
              device.sms / rate / out.plain.count());
}

/// Elements that one block of PyTorch's element-wise kernels handles.
constexpr double kElementsOfBlock = 512;

void elementwise_features(const Kernel& kernel, const GpuRates& device, ResidualInput& out) {
  const double bytes = bytes_of(kernel);
  const auto elements = static_cast<double>(std::max<std::int64_t>(1, kernel.elements));
  out.plain = memory_time(bytes, CostClass::kElementwise, device, plain());
  out.shape = shape_hash({kernel.elements});
  const double waves = std::ceil(elements / kElementsOfBlock) / device.sms;
  Writer w(out);
  for (const double size : {elements, bytes, out.plain.count(), bytes / l2_of(device),
                            (static_cast<double>(kernel.read.count()) + 1) /
                                (static_cast<double>(kernel.written.count()) + 1),
                            bytes / elements, kernel.flops.count() / elements})
    w.add_log(size);
  w.add(alignment(kernel.elements));
  w.add_log(std::ceil(waves) / waves);
}

void row_features(const Kernel& kernel, const RowShape& s, const GpuRates& device,
                  ResidualInput& out) {
  const double bytes = bytes_of(kernel), rows = static_cast<double>(s.rows),
               width = static_cast<double>(s.width);
  out.plain = memory_time(bytes, CostClass::kSoftmax, device, plain());
  out.shape = shape_hash({s.rows, s.width});
  const double waves = rows / device.sms;
  Writer w(out);
  for (const double size : {rows, width, bytes, out.plain.count(), bytes / l2_of(device),
                            (static_cast<double>(kernel.read.count()) + 1) /
                                (static_cast<double>(kernel.written.count()) + 1)})
    w.add_log(size);
  w.add(kernel.kernel_class == KernelClass::kNormalization);
  w.add(alignment(s.width));
  w.add(std::ceil(std::log2(width)) - std::log2(width));
  w.add_log(waves), w.add_log(std::ceil(waves) / waves);
  w.add_log(std::ceil(width / 32) * 32 / width), w.add_log(4 * width);
}

/// Arithmetic of the transforms of cuDNN's FFT convolutions is small beside the complex products.
Seconds fft_time(double batch, double side, double in, double out, double tile, double rate,
                 const GpuRates& device) {
  const double patches = batch * std::ceil(side / (tile - 2)) * std::ceil(side / (tile - 2));
  const double points = tile * (tile / 2 + 1);
  const double bytes = 16 * points * (patches * (in + out) + in * out);
  return Seconds(8 * points * patches * in * out / rate + bytes / device.bandwidth);
}

void convolution_features(const Kernel& kernel, const ConvolutionShape& s, const GpuRates& device,
                          ResidualInput& out) {
  const double batch = static_cast<double>(s.batch), in = static_cast<double>(s.in_channels),
               channels = static_cast<double>(s.out_channels);
  const double pixels = static_cast<double>(s.out[0] * s.out[1]), side = std::sqrt(pixels);
  const double rate = device.rate[0], flops = 18 * batch * pixels * in * channels;
  const Seconds memory = memory_time(bytes_of(kernel), CostClass::kConvolution, device, plain());
  const auto winograd = [&](double tile) {
    const double points = (tile + 2) * (tile + 2);
    const double patches = batch * std::ceil(side / tile) * std::ceil(side / tile);
    return best_tile({.m = patches, .n = channels, .k = in, .batch = points, .split_k = false},
                     rate, device, plain().kernel)
        .time;
  };
  const double patches4 = batch * std::ceil(side / 4) * std::ceil(side / 4);
  const double staging = 8 * 36 * (patches4 * (in + channels) + in * channels);
  const Seconds direct = std::max(
      memory, best_tile({.m = batch * pixels, .n = channels, .k = 9 * in, .split_k = false}, rate,
                        device, plain().kernel)
                  .time);
  const Seconds fused = std::max(memory, winograd(2));
  const Seconds staged = winograd(4) + Seconds(staging / device.bandwidth);
  out.plain = std::min({direct, fused, staged});
  out.shape = shape_hash({s.batch, s.in_channels, s.out_channels, s.out[0], s.out[1]});
  const double l2 = l2_of(device);
  Writer w(out);
  for (const double size :
       {batch, in, channels, side, flops, out.plain.count(), direct.count(), fused / direct,
        staged / direct, memory / direct, staging / device.bandwidth / direct.count(),
        fft_time(batch, side, in, channels, 16, rate, device) / direct,
        fft_time(batch, side, in, channels, 32, rate, device) / direct, bytes_of(kernel) / l2,
        4 * batch * pixels * in / l2, 4 * batch * pixels * channels / l2, 36 * in * channels / l2,
        staging / l2})
    w.add_log(size);
  w.add(alignment(s.in_channels)), w.add(alignment(s.out_channels)), w.add(alignment(s.out[0]));
  w.add_log(4 * std::ceil(side / 2) * std::ceil(side / 2) / pixels);
  w.add_log(16 * patches4 / batch / pixels);
  const std::array tiles{kFeatureTiles[1], kFeatureTiles[2], kFeatureTiles[4], kFeatureTiles[7]};
  std::array<Cover, tiles.size()> covers{};
  for (std::size_t i = 0; i < tiles.size(); ++i)
    covers[i] = cover(batch * pixels, channels, 1, tiles[i], device.sms);
  for (const Cover& c : covers) w.add_log(c.pad);
  for (const Cover& c : covers) w.add_log(c.tail);
  w.add_log(covers.front().blocks), w.add_log(covers.back().blocks);
  // Fused Winograd: 32 filters by 32 patches of 2x2 a block.
  const double blocks =
      std::ceil(channels / 32) * std::ceil(batch * std::ceil(side / 2) * std::ceil(side / 2) / 32);
  w.add_log(blocks / device.sms), w.add_log(in / channels), w.add_log(9 * in / 128);
}

bool is_learned_convolution(const ConvolutionShape& s) {
  const auto all = [](const std::array<std::int64_t, 3>& sizes, std::int64_t first) {
    return sizes[0] == first && sizes[1] == first && sizes[2] == 1;
  };
  return s.spatial == 2 && s.groups == 1 && !s.transposed && s.pass == Pass::kForward &&
         all(s.kernel, 3) && all(s.stride, 1) && all(s.dilation, 1) && s.in == s.out &&
         s.batch > 0 && s.in_channels > 0 && s.out_channels > 0 && s.out[0] > 0 && s.out[1] > 0;
}

/// Half precision behaves otherwise, and no row of it is known.
bool is_single(const Kernel& kernel) {
  return kernel.unit == MathUnit::kFp32 && kernel.dtype == DType::kF32;
}

}  // namespace

std::span<const std::string_view> feature_names(ResidualFamily family) {
  switch (family) {
    case ResidualFamily::kGemm:
      return kGemmAll;
    case ResidualFamily::kElementwise:
      return kElementwiseAll;
    case ResidualFamily::kRows:
      return kRowAll;
    case ResidualFamily::kConvolution:
      break;
  }
  return kConvolutionAll;
}

std::size_t shape_features(ResidualFamily family) {
  return feature_names(family).size() - kGpuNames.size();
}

ResidualFeatures::ResidualFeatures(const Gpu& gpu) : device_(gpu_rates(gpu, plain())) {
  const double rate = device_.rate[0];
  const auto log = [](double x) { return static_cast<float>(std::log2(std::max(x, 1e-30))); };
  gpu_ = {log(rate),
          log(device_.bandwidth),
          log(rate / device_.bandwidth),
          log(device_.sms),
          static_cast<float>(gpu.fp32_cores_per_sm),
          log(l2_of(device_)),
          log(rate / nominal_peak(gpu, MathUnit::kFp32)),
          static_cast<float>(gpu.compute_capability)};
}

std::optional<ResidualInput> ResidualFeatures::of(const Kernel& kernel) const {
  if (!is_single(kernel)) return std::nullopt;
  const auto family = row_of(kernel.kernel_class).learned;
  if (!family) return std::nullopt;
  ResidualInput out;
  out.family = *family;
  if (*family == ResidualFamily::kGemm) {
    const auto* gemm = std::get_if<GemmShape>(&kernel.shape);
    if (gemm == nullptr || gemm->m <= 0 || gemm->n <= 0 || gemm->k <= 0 || gemm->batch <= 0)
      return std::nullopt;
    gemm_features(kernel, *gemm, device_, out);
  } else if (*family == ResidualFamily::kConvolution) {
    const auto* convolution = std::get_if<ConvolutionShape>(&kernel.shape);
    if (convolution == nullptr || !is_learned_convolution(*convolution)) return std::nullopt;
    convolution_features(kernel, *convolution, device_, out);
  } else if (*family == ResidualFamily::kRows) {
    const auto* rows = std::get_if<RowShape>(&kernel.shape);
    if (rows == nullptr || kernel.phase == StepPhase::kBackward || rows->rows <= 0 ||
        rows->width <= 0)
      return std::nullopt;
    row_features(kernel, *rows, device_, out);
  } else {
    if (!(bytes_of(kernel) > 0)) return std::nullopt;
    elementwise_features(kernel, device_, out);
  }
  std::copy(gpu_.begin(), gpu_.end(),
            out.features.begin() + static_cast<std::ptrdiff_t>(shape_features(out.family)));
  return out;
}

std::uint64_t feature_fingerprint() {
  Gpu gpu;
  gpu.architecture = Architecture::kVolta;
  gpu.sm_count = 80, gpu.fp32_cores_per_sm = 64, gpu.compute_capability = 70;
  gpu.peak.fp32 = 14e12, gpu.bandwidth = 900e9, gpu.l2 = Bytes(6 << 20), gpu.tdp_watts = 250;
  const ResidualFeatures features(gpu);
  std::vector<Kernel> kernels(4);
  kernels[0].kernel_class = KernelClass::kGemm;
  kernels[0].shape = GemmShape{3, 500, 1000, 72, false, true};
  kernels[1].kernel_class = KernelClass::kElementwise;
  kernels[2].kernel_class = KernelClass::kSoftmax;
  kernels[2].shape = RowShape{1000, 300};
  kernels[3].kernel_class = KernelClass::kConvolution;
  ConvolutionShape convolution{.batch = 8, .in_channels = 48, .out_channels = 100};
  convolution.in = convolution.out = {27, 27, 1}, convolution.kernel = {3, 3, 1};
  kernels[3].shape = convolution;
  std::string text;
  for (Kernel& kernel : kernels) {
    kernel.read = Bytes(3'000'000), kernel.written = Bytes(1'500'000), kernel.elements = 375'000;
    kernel.flops = Flops(4e6);
    const auto input = features.of(kernel);
    if (!input) continue;
    text += name_of(input->family);
    for (std::size_t i = 0; i < feature_names(input->family).size(); ++i) {
      text += ' ' + std::string(feature_names(input->family)[i]) + '=';
      text += std::to_string(std::lround(1000 * input->features[i]));
    }
    text += ' ' + std::to_string(std::lround(1e10 * input->plain.count())) + '\n';
  }
  return fnv1a(text);
}

}  // namespace stoker
