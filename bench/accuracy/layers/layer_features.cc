#include "accuracy/layers/layer_features.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"

namespace stoker::accuracy {
namespace {

constexpr std::array<std::string_view, 46> kNames{"log_analytic",
                                                  "log_convolution",
                                                  "log_convolution_input",
                                                  "log_convolution_weight",
                                                  "log_products",
                                                  "log_input",
                                                  "log_output",
                                                  "log_filter",
                                                  "log_input_work",
                                                  "log_output_work",
                                                  "share_convolution",
                                                  "share_convolution_input",
                                                  "share_convolution_weight",
                                                  "share_products",
                                                  "share_padding",
                                                  "share_input",
                                                  "share_output",
                                                  "share_update",
                                                  "share_activation",
                                                  "share_fixed",
                                                  "log_batch",
                                                  "log_side",
                                                  "kernel",
                                                  "log_in_channels",
                                                  "log_out_channels",
                                                  "stride",
                                                  "same",
                                                  "bias",
                                                  "optimizer",
                                                  "activation",
                                                  "odd_padding",
                                                  "padding",
                                                  "out_side",
                                                  "log_reduction",
                                                  "log_rows",
                                                  "in_mod_4",
                                                  "out_mod_4",
                                                  "batch_mod_4",
                                                  "in_mod_32",
                                                  "out_mod_32",
                                                  "in_mod_8",
                                                  "out_mod_8",
                                                  "log_flops",
                                                  "log_filter_elements",
                                                  "side_mod_16",
                                                  "is_product"};
static_assert(kNames.size() <= kMostFeatures);

constexpr double kLeast = 1e-9;  ///< ms or a share: below, as good as nothing

double at(const std::array<double, kLayerParts>& values, LayerPart part) {
  return values[static_cast<std::size_t>(part)];
}

/// Shares of the analytic time: what the GPU's own balance makes of the network.
class FeatureWriter {
 public:
  explicit FeatureWriter(std::array<float, kMostFeatures>& out) : out_(out) {}
  void add(double value) { out_[next_++] = static_cast<float>(value); }
  void add_log(double value) { add(std::log2(std::max(value, kLeast))); }
  [[nodiscard]] std::size_t count() const { return next_; }

 private:
  std::array<float, kMostFeatures>& out_;
  std::size_t next_ = 0;
};

void add_columns(const std::array<double, kLayerParts>& c, double analytic, FeatureWriter& out) {
  using enum LayerPart;
  out.add_log(analytic);
  for (const double part :
       {at(c, kConvolution), at(c, kConvolutionInput), at(c, kConvolutionWeight),
        at(c, kProduct) + at(c, kProductInput) + at(c, kProductWeight), at(c, kInput),
        at(c, kOutput), at(c, kFilter), at(c, kInputWork), at(c, kOutputWork)}) {
    out.add_log(part / analytic);
  }
}

void add_shares(const LayerCost& cost, FeatureWriter& out) {
  using enum LayerPart;
  const auto part = [&](LayerPart p) { return cost.parts[static_cast<std::size_t>(p)].count(); };
  double updates = 0;
  for (int p = static_cast<int>(kUpdateSgd); p <= static_cast<int>(kUpdateAdadelta); ++p)
    updates += part(static_cast<LayerPart>(p));
  for (const double time : {part(kConvolution), part(kConvolutionInput), part(kConvolutionWeight),
                            part(kProduct) + part(kProductInput) + part(kProductWeight),
                            part(kPadding) + part(kPaddingWork), part(kInput) + part(kInputWork),
                            part(kOutput) + part(kOutputWork), updates,
                            part(kActivation) + part(kBias), cost.fixed.count()}) {
    out.add(time / cost.analytic.count());
  }
}

void add_sizes(const LayerNetwork& net, FeatureWriter& out) {
  const auto real = [](std::int64_t x) { return static_cast<double>(x); };
  const double reduction = real(net.in_channels * net.kernel * net.kernel);
  const double rows = real(net.batch * net.out_side() * net.out_side());
  out.add_log(real(net.batch));
  out.add_log(real(net.in_side));
  out.add(real(net.kernel));
  out.add_log(real(net.in_channels));
  out.add_log(real(net.out_channels));
  out.add(real(net.stride));
  out.add(net.same_padding);
  out.add(net.bias);
  out.add(static_cast<double>(net.optimizer));
  out.add(static_cast<double>(net.activation));
  out.add(real(net.padding() % 2));
  out.add(real(net.padding()));
  out.add(real(net.out_side()));
  out.add_log(reduction);
  out.add_log(rows);
  out.add(real(net.in_channels % 4));
  out.add(real(net.out_channels % 4));
  out.add(real(net.batch % 4));
  out.add(real(net.in_channels % 32));
  out.add(real(net.out_channels % 32));
  out.add(real(net.in_channels % 8));
  out.add(real(net.out_channels % 8));
  out.add_log(rows * reduction * real(net.out_channels));
  out.add_log(reduction * real(net.out_channels));
  out.add(real(net.out_side() % 16));
  out.add(net.is_product());
}

std::uint64_t hash_of(const LayerNetwork& net) {
  std::string text;
  for (const std::int64_t x : {static_cast<std::int64_t>(net.kind), net.batch, net.in_channels,
                               net.out_channels, net.in_side, net.kernel, net.stride}) {
    text += std::to_string(x) + ' ';
  }
  return fnv1a(text);
}

}  // namespace

std::span<const std::string_view> layer_feature_names() { return kNames; }

LayerFamily family_of(const LayerNetwork& network) {
  return network.kind == LayerKind::kDense ? LayerFamily::kDense : LayerFamily::kConvolution;
}

ForestInput layer_input(const LayerNetwork& network, const LayerCost& cost,
                        const std::array<double, kLayerParts>& columns) {
  ForestInput input;
  input.plain = as_seconds(cost.analytic);
  input.shape = hash_of(network);
  FeatureWriter out(input.features);
  add_columns(columns, milliseconds(cost.analytic), out);
  add_shares(cost, out);
  add_sizes(network, out);
  return input;
}

std::uint64_t layer_fingerprint() {
  Gpu gpu;
  gpu.architecture = Architecture::kPascal;
  gpu.sm_count = 28;
  gpu.peak.fp32 = 11e12, gpu.bandwidth = 484e9, gpu.tdp_watts = 250;
  const LayerModel model(gpu, LayerKnowledge{});
  LayerNetwork convolution{.batch = 5, .in_channels = 20, .out_channels = 33, .in_side = 57};
  convolution.kernel = 4, convolution.stride = 2, convolution.same_padding = true;
  convolution.optimizer = LayerOptimizer::kAdam;
  LayerNetwork small{.batch = 3, .in_channels = 9, .out_channels = 64, .in_side = 30, .kernel = 3};
  const LayerNetwork dense{
      .kind = LayerKind::kDense, .batch = 7, .in_channels = 500, .out_channels = 1000};
  std::string text;
  for (const LayerNetwork& network : {convolution, small, dense}) {
    const ForestInput input =
        layer_input(network, model.analytic_of(network), model.columns(network));
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      text +=
          std::string(kNames[i]) + '=' + std::to_string(std::lround(100 * input.features[i])) + ' ';
    }
  }
  return fnv1a(text);
}

}  // namespace stoker::accuracy
