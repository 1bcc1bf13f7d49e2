#include "accuracy/layers/layer_coefficients.h"

#include <gtest/gtest.h>

namespace stoker::accuracy {
namespace {

constexpr const char* kHead = R"({"format": "stoker-layer-coefficients", "schema_version": [1, 0])";

Result<LayerCoefficients> parsed(const std::string& rest) {
  return LayerCoefficients::parse(kHead + rest + "}", "l.json");
}

Gpu gpu_of(const std::string& name, Architecture architecture) {
  Gpu gpu;
  gpu.name = name;
  gpu.architecture = architecture;
  return gpu;
}

double bias(const LayerKnowledge& knowledge) {
  return knowledge.session.part[static_cast<std::size_t>(LayerPart::kBias)];
}

TEST(LayerCoefficients, LaterLayersOverride) {
  const auto file = parsed(R"(, "base": {"session": {"bias": 3, "dense_us_adam": 7, "spread": 0.1}},
    "architectures": {"kepler": {"session": {"bias": 4}}},
    "gpus": {"K80-die": {"session": {"bias": 5, "convolution_us_none": 9}}})");
  ASSERT_TRUE(file) << file.error().text();
  const LayerKnowledge other = file->for_gpu(gpu_of("X", Architecture::kVolta));
  EXPECT_EQ(bias(other), 3);
  EXPECT_EQ(other.session.dense_us[static_cast<std::size_t>(LayerOptimizer::kAdam)], 7);
  EXPECT_EQ(other.session.spread, 0.1);
  EXPECT_EQ(other.forests, nullptr);
  EXPECT_EQ(bias(file->for_gpu(gpu_of("K40", Architecture::kKepler))), 4);
  const LayerKnowledge own = file->for_gpu(gpu_of("k80 die", Architecture::kKepler));
  EXPECT_EQ(bias(own), 5);
  EXPECT_EQ(own.session.convolution_us[0], 9);
}

TEST(LayerCoefficients, AnotherHostHasTheBandOfAMachineWithoutRows) {
  const auto file = parsed(R"(, "base": {"session":
      {"spread": 0.25, "convolution_floor_spread": 0.4, "dense_floor_spread": 1.2}},
    "gpus": {"K40": {"session": {"spread": 0, "convolution_floor_spread": 0,
                                 "dense_floor_spread": 0.05, "dense_us_adam": 7}}})");
  ASSERT_TRUE(file) << file.error().text();
  const Gpu gpu = gpu_of("K40", Architecture::kKepler);
  EXPECT_EQ(file->for_gpu(gpu).session.dense_floor_spread, 0.05);
  const LayerKnowledge moved = file->in_another_host(gpu);
  EXPECT_EQ(moved.session.convolution_floor_spread, 0.4);
  EXPECT_EQ(moved.session.dense_floor_spread, 1.2);
  EXPECT_EQ(moved.session.spread, 0.25);
  EXPECT_EQ(moved.session.dense_us[static_cast<std::size_t>(LayerOptimizer::kAdam)], 7);
}

TEST(LayerCoefficients, DamagedFilesSayWhatIsWrong) {
  const auto error = [](const Result<LayerCoefficients>& r) {
    return r ? "none" : r.error().text();
  };
  EXPECT_NE(error(LayerCoefficients::parse("{", "l.json")).find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(error(parsed(R"(, "base": {"session": {"bais": 3}})")).find("\"bais\""),
            std::string::npos);
  EXPECT_NE(error(parsed(R"(, "gpus": {"K40": {}})")).find("gpus.K40"), std::string::npos);
  EXPECT_NE(error(parsed(R"(, "trees": "../x")")).find("same folder"), std::string::npos);
}

/// The trees give what XGBoost gave (stored with them), for the features of this build.
TEST(LayerCoefficients, WhatWasFittedIsSound) {
  const auto fitted = LayerCoefficients::load_fitted();
  ASSERT_TRUE(fitted) << fitted.error().text();
  const LayerKnowledge knowledge = fitted->for_gpu(gpu_of("K40", Architecture::kKepler));
  ASSERT_NE(knowledge.forests, nullptr);
  for (std::size_t family = 0; family < kLayerFamilies; ++family) {
    const auto forests = forests_of(*knowledge.forests, family, "GK110");
    ASSERT_EQ(forests.size(), 1U);
    EXPECT_EQ(forests.front()->fold, -1);
    EXPECT_GT(forests.front()->roots.size(), 50U);
  }
}

}  // namespace
}  // namespace stoker::accuracy
