#include "plan/comparison.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Forecast of_rate(double value, double low, double high, const char* name = "GPU") {
  Forecast f;
  f.gpu_name = name;
  f.memory.fits = true;
  f.samples_per_s = {value, low, high, ""};
  return f;
}

TEST(ComparisonTest, BandsThatDoNotOverlapGiveOnePlaceEach) {
  const Forecast slow = of_rate(100, 90, 110), fast = of_rate(200, 180, 220);
  const auto ranked = rank(Objective::kThroughput, {&slow, &fast});
  EXPECT_EQ(ranked[0].index, 1U);
  EXPECT_EQ(ranked[0].first, 1U);
  EXPECT_EQ(ranked[0].last, 1U);
  EXPECT_EQ(ranked[1].first, 2U);
  EXPECT_EQ(ranked[1].last, 2U);
}

TEST(ComparisonTest, OverlappingBandsShareTheirPlaces) {
  const Forecast a = of_rate(100, 80, 120), b = of_rate(110, 90, 130), c = of_rate(300, 250, 350);
  const auto ranked = rank(Objective::kThroughput, {&a, &b, &c});
  EXPECT_EQ(ranked[0].index, 2U);
  EXPECT_EQ(ranked[0].last, 1U);
  EXPECT_EQ(ranked[1].index, 1U);
  EXPECT_EQ(ranked[1].first, 2U);
  EXPECT_EQ(ranked[1].last, 3U);
  EXPECT_EQ(ranked[2].first, 2U);
}

TEST(ComparisonTest, WhatDoesNotFitComesLastWithoutAPlace) {
  Forecast fast = of_rate(200, 180, 220);
  fast.memory.fits = false;
  const Forecast slow = of_rate(100, 90, 110);
  const auto ranked = rank(Objective::kThroughput, {&fast, &slow});
  EXPECT_EQ(ranked[0].index, 1U);
  EXPECT_EQ(ranked[0].last, 1U);
  EXPECT_EQ(ranked[1].first, 0U);
}

TEST(ComparisonTest, CostWeighsPriceAgainstSpeed) {
  Forecast slow = of_rate(100, 90, 110), fast = of_rate(200, 180, 220);
  slow.price_per_gpu_hour = 1;
  fast.price_per_gpu_hour = 3;
  EXPECT_EQ(rank(Objective::kCost, {&fast, &slow})[0].index, 1U);
  EXPECT_EQ(rank(Objective::kEpoch, {&slow, &fast})[0].index, 1U);
  EXPECT_NEAR(objective_figure(Objective::kCost, slow).value, 1.0 / 3600 / 100, 1e-12);
}

TEST(ComparisonTest, AnObjectiveWithoutItsFiguresIsRefused) {
  Forecast priced = of_rate(100, 90, 110, "A"), other = of_rate(200, 180, 220, "B");
  priced.price_per_gpu_hour = 1;
  const auto cost = check_objective(Objective::kCost, {&priced, &other});
  ASSERT_FALSE(cost);
  EXPECT_NE(cost.error().message.find("B"), std::string::npos);
  EXPECT_TRUE(check_objective(Objective::kCost, {&other, &other}));
  EXPECT_FALSE(check_objective(Objective::kEnergy, {&priced}));
  EXPECT_TRUE(check_objective(Objective::kThroughput, {&priced, &other}));
}

}  // namespace
}  // namespace stoker
