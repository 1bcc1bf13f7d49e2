#include "accuracy/layers/layer_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "accuracy/layers/layer_cost.h"
#include "accuracy/layers/layer_features.h"
#include "timing/common/testing.h"
#include "timing/step/coefficient_file.h"

namespace stoker::accuracy {
namespace {

const LayerKernel* find(const std::vector<LayerKernel>& kernels, LayerPart part) {
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const LayerKernel& k) { return k.part == part; });
  return found == kernels.end() ? nullptr : &*found;
}

LayerNetwork convolution() {
  LayerNetwork net;
  net.batch = 2, net.in_side = 8, net.in_channels = 3, net.out_channels = 5, net.kernel = 4;
  net.stride = 2, net.same_padding = true, net.bias = true;
  net.activation = LayerActivation::kRelu;
  return net;
}

TEST(LayerNetwork, SidesAndPadding) {
  LayerNetwork net = convolution();
  EXPECT_EQ(net.out_side(), 4);  // ceil(8 / 2)
  EXPECT_EQ(net.padding(), 2);   // (4 - 1) * 2 + 4 - 8
  net.same_padding = false;
  EXPECT_EQ(net.out_side(), 3);  // (8 - 4) / 2 + 1
  EXPECT_EQ(net.padding(), 0);
  net.kernel = 8;
  EXPECT_TRUE(net.is_product());  // the kernel covers the input
}

TEST(LayerNetwork, ForwardByHand) {
  const auto kernels = layer_kernels(convolution());
  const LayerKernel* product = find(kernels, LayerPart::kConvolution);
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->kernel.flops.count(), 2.0 * 2 * 16 * 5 * 3 * 16);  // 2 B out^2 Cout Cin k^2
  EXPECT_EQ(product->kernel.read.count(), 4 * (2 * 64 * 3 + 16 * 3 * 5));
  EXPECT_EQ(product->kernel.written.count(), 4 * 2 * 16 * 5);
  // Input to nchw and output back: each read and written once.
  EXPECT_EQ(find(kernels, LayerPart::kLayout)->kernel.read.count(), 4 * (2 * 64 * 3 + 2 * 16 * 5));
  EXPECT_EQ(find(kernels, LayerPart::kBias)->kernel.written.count(), 4 * 2 * 16 * 5);
  EXPECT_EQ(find(kernels, LayerPart::kPadding), nullptr);  // 2 rows: one on each side
  EXPECT_EQ(find(kernels, LayerPart::kLoss), nullptr);     // forward only
}

TEST(LayerNetwork, TrainingUpdatesInputTargetFilterAndBias) {
  LayerNetwork net = convolution();
  net.optimizer = LayerOptimizer::kAdam;
  const auto kernels = layer_kernels(net);
  const LayerKernel* update = find(kernels, LayerPart::kUpdateAdam);
  ASSERT_NE(update, nullptr);
  const std::int64_t elements = 2 * 64 * 3 + 2 * 16 * 5 + 16 * 3 * 5 + 5;
  EXPECT_EQ(update->kernel.read.count() + update->kernel.written.count(), 4 * elements);
  const auto* weight =
      std::get_if<ConvolutionShape>(&find(kernels, LayerPart::kConvolutionWeight)->kernel.shape);
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->pass, Pass::kBackwardWeight);
  EXPECT_EQ(find(kernels, LayerPart::kUpdateSgd), nullptr);
}

TEST(LayerNetwork, DenseIsThreeProducts) {
  LayerNetwork net;
  net.kind = LayerKind::kDense;
  net.batch = 7, net.in_channels = 11, net.out_channels = 13;
  net.optimizer = LayerOptimizer::kSgd;
  const auto kernels = layer_kernels(net);
  const auto gemm = [&](LayerPart part) {
    return std::get<GemmShape>(find(kernels, part)->kernel.shape);
  };
  EXPECT_EQ(gemm(LayerPart::kProduct).m, 7);
  EXPECT_EQ(gemm(LayerPart::kProduct).n, 13);
  EXPECT_EQ(gemm(LayerPart::kProduct).k, 11);
  EXPECT_EQ(gemm(LayerPart::kProductInput).k, 13);
  EXPECT_EQ(gemm(LayerPart::kProductWeight).k, 7);
  EXPECT_EQ(find(kernels, LayerPart::kLayout), nullptr);
}

TEST(LayerModel, PartsAndTheFixedTimeAddUp) {
  LayerNetwork net = convolution();
  net.optimizer = LayerOptimizer::kMomentum;
  const LayerKnowledge knowledge;
  const LayerModel model(timing_test::round_gpu(), knowledge);
  const LayerCost cost = model.cost_of(net);
  Nanos sum = cost.fixed;
  for (const Nanos part : cost.parts) sum += part;
  EXPECT_NEAR(sum.count(), cost.analytic.count(), 1e-6);
  EXPECT_EQ(cost.fixed.count(),
            1e3 * knowledge.session.convolution_us[static_cast<int>(LayerOptimizer::kMomentum)]);
  EXPECT_GT(cost.band.above, 0);
  // A byte a nanosecond: the output of 160 words is read and written once.
  const auto columns = model.columns(net);
  EXPECT_NEAR(columns[static_cast<std::size_t>(LayerPart::kBias)], 4e-6 * 2 * 2 * 16 * 5, 1e-9);
}

std::vector<LayerNetwork> various() {
  std::vector<LayerNetwork> all;
  for (const std::int64_t batch : {1, 4, 16, 64}) {
    for (const LayerOptimizer optimizer : {LayerOptimizer::kNone, LayerOptimizer::kAdam}) {
      LayerNetwork net = convolution();
      net.batch = batch;
      net.in_side = 40 * batch;
      net.optimizer = optimizer;
      all.push_back(net);
    }
  }
  return all;
}

TEST(LayerModel, RowsOfTheGpuSetItsFixedTimeAndItsRate) {
  LayerModel model(timing_test::round_gpu(), LayerKnowledge{});
  std::vector<MeasuredLayer> rows;
  for (const LayerNetwork& net : various()) {
    const LayerCost cost = model.cost_of(net);
    rows.push_back({net, 1.5 * cost.fixed + 0.7 * (cost.analytic - cost.fixed)});
  }
  const std::vector<MeasuredLayer> too_few(rows.begin(), rows.begin() + 3);
  const Nanos before = model.cost_of(rows.front().network).total;
  model.calibrate(too_few);
  EXPECT_EQ(model.cost_of(rows.front().network).total, before);
  model.calibrate(rows);
  for (const MeasuredLayer& row : rows)
    EXPECT_NEAR(model.cost_of(row.network).total / row.time, 1, 0.02);
}

TEST(LayerModel, BandsReachAsFarAsTreesSayAndWiderOnAMachineWithoutRows) {
  // One leaf a forest: the time is the analytic one, the band reaches e^0.1 times as far.
  const auto leaf = [](LayerFamily family, float value) {
    Forest forest;
    forest.family = static_cast<std::size_t>(family);
    forest.chips = {"*"};
    forest.roots = {0};
    forest.nodes = {{value, TreeNode::kLeaf, 0}};
    return forest;
  };
  const float tenth = std::log(0.1F);
  LayerKnowledge knowledge;
  knowledge.forests = std::make_shared<const std::vector<Forest>>(std::vector<Forest>{
      leaf(LayerFamily::kConvolution, 0), leaf(LayerFamily::kConvolutionWidth, tenth)});
  knowledge.session.spread = knowledge.session.convolution_floor_spread = 0;
  const LayerModel known(timing_test::round_gpu(), knowledge);
  const LayerCost cost = known.cost_of(convolution());
  EXPECT_EQ(cost.total, cost.analytic);
  EXPECT_NEAR(cost.band.above, std::exp(0.1) - 1, 1e-6);
  EXPECT_NEAR(cost.band.below, 1 - std::exp(-0.1), 1e-6);
  knowledge.session.convolution_floor_spread = 0.5;
  const LayerCost elsewhere =
      LayerModel(timing_test::round_gpu(), knowledge).cost_of(convolution());
  const double fixed = cost.fixed / cost.analytic;
  EXPECT_NEAR(elsewhere.band.above, std::hypot(std::exp(0.1) - 1, 0.5 * fixed), 1e-6);
}

TEST(LayerFeatures, NameNoGpuAndAreFinite) {
  const LayerModel model(timing_test::round_gpu(), LayerKnowledge{});
  for (const LayerNetwork& net : various()) {
    const ForestInput input = layer_input(net, model.analytic_of(net), model.columns(net));
    for (std::size_t i = 0; i < layer_feature_names().size(); ++i)
      EXPECT_TRUE(std::isfinite(input.features[i])) << layer_feature_names()[i];
    LayerNetwork other = net;
    other.bias = !other.bias;  // a shape is left out with all its variants or not at all
    EXPECT_EQ(layer_input(other, model.analytic_of(other), model.columns(other)).shape,
              input.shape);
  }
}

}  // namespace
}  // namespace stoker::accuracy
