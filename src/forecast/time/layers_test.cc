#include "forecast/time/layers.h"

#include <algorithm>

#include "base/files.h"
#include "forecast/test_scenario.h"

namespace stoker {
namespace {

class LayersTest : public testing_support::ScenarioTest {
 protected:
  void use(const std::string& model) {
    auto step = read_step_file(data_folder().value() / "zoo" / (model + ".fp32.step.gz"));
    ASSERT_TRUE(step) << step.error().text();
    step_ = std::move(*step);
  }

  LayerSum layers_now() {
    auto layers = layer_sum(scenario_, *knowledge_);
    EXPECT_TRUE(layers) << layers.error().text();
    return layers.value();
  }
};

Nanos parts_of(const LayerGroup& g) {
  return g.forward + g.loss + g.backward + g.update + g.overhead;
}

TEST_F(LayersTest, SumLessTermsIsTheStep) {
  for (const char* model : {"cnn_mnist", "resnet18", "gpt2"}) {
    use(model);
    const LayerSum layers = layers_now();
    Nanos sum, left = layers.sum;
    std::size_t count = 0;
    for (const LayerGroup& g : layers.groups) {
      EXPECT_NEAR(parts_of(g).count(), g.alone.count(), 1e-3) << model;
      EXPECT_GE(g.overhead.count(), 0) << model;
      sum += g.alone * static_cast<double>(g.modules.size());
      count += g.modules.size();
    }
    for (const Nanos term : layers.terms) left -= term;
    // Layers that share a line may differ by half a nanosecond each.
    EXPECT_NEAR(sum.count(), layers.sum.count(), 0.5 * static_cast<double>(count)) << model;
    EXPECT_EQ(count, layers.layers) << model;
    EXPECT_NEAR(left.count(), layers.step.total.count(), 1) << model;
    EXPECT_EQ(layers.step.total, forecast_now().time.total) << model;
  }
}

TEST_F(LayersTest, EachLayerPaysItsLaunchAndWait) {
  use("resnet18");
  const LayerSum layers = layers_now();
  const auto term = [&](LayerTerm t) { return layers.terms[static_cast<std::size_t>(t)]; };
  const HostCoefficients host = knowledge_->timing.for_device(scenario_.machine.device)->host;
  // At least what surrounds a step and the noticing of its end, for all layers but one.
  EXPECT_GT(
      term(LayerTerm::kLaunchAndWait).count(),
      as_nanos(host.step + host.synchronize).count() * static_cast<double>(layers.layers - 1));
  EXPECT_GT(term(LayerTerm::kBenchmarkOnly).count(), 0);
  EXPECT_LT(term(LayerTerm::kOutsideOfLayers).count(), 0);  // residual additions, loss, input copy
  EXPECT_GT(layers.factor(), 1);
}

TEST_F(LayersTest, FirstLayerGetsAnInputGradientThatTheStepLacks) {
  const LayerSum layers =
      layers_now();  // linear_step_json: forward and weight gradient of one layer
  ASSERT_EQ(layers.layers, 1u);
  const LayerGroup& fc = layers.groups.front();
  EXPECT_EQ(name_of(fc, step_), "fc");
  Nanos in_step;
  for (const auto& [module, time] : forecast_now().module_time) {
    if (step_.module_names[index(module)] == "fc") in_step = time;
  }
  // A third product of the same size beside those of the step.
  EXPECT_NEAR((fc.forward + fc.backward - in_step).count(), fc.forward.count(),
              0.3 * fc.forward.count());
  EXPECT_GT(fc.loss.count(), 0);
  EXPECT_GT(fc.update.count(), 0);
}

TEST_F(LayersTest, AlikeLayersShareALineAndAName) {
  use("gpt2");
  const LayerSum layers = layers_now();
  const auto found = std::find_if(
      layers.groups.begin(), layers.groups.end(),
      [&](const LayerGroup& g) { return name_of(g, step_) == "transformer.h.*.mlp.c_fc"; });
  ASSERT_NE(found, layers.groups.end());
  EXPECT_EQ(found->modules.size(), 12u);
}

TEST_F(LayersTest, WithoutAnOptimizerNothingIsUpdated) {
  scenario_.job.optimizer.kind = OptimizerKind::kNone;
  const LayerSum layers = layers_now();
  for (const LayerGroup& g : layers.groups) EXPECT_EQ(g.update.count(), 0);
}

TEST_F(LayersTest, RefusesWhatHasNoMeaningForALayerAlone) {
  scenario_.job.gpus = 2;
  auto layers = layer_sum(scenario_, *knowledge_);
  ASSERT_FALSE(layers);
  EXPECT_NE(layers.error().text().find("{gpus}"), std::string::npos);
  scenario_.job.gpus = 1;
  scenario_.job.accumulate = 4;
  layers = layer_sum(scenario_, *knowledge_);
  ASSERT_FALSE(layers);
  EXPECT_NE(layers.error().text().find("{accumulate}"), std::string::npos);
}

}  // namespace
}  // namespace stoker
