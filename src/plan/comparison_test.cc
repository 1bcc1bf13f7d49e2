#include "plan/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

/// Every figure at either end of its band, in all combinations: the best and the worst place of
/// each.
std::vector<std::pair<std::size_t, std::size_t>> places_by_trial(const std::vector<Forecast>& all) {
  std::vector<std::pair<std::size_t, std::size_t>> places(all.size(), {all.size(), 1});
  for (unsigned ends = 0; ends < 1U << all.size(); ++ends) {
    const auto value = [&](std::size_t i) {
      return (ends >> i & 1U) != 0 ? all[i].samples_per_s.high : all[i].samples_per_s.low;
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::size_t place = 1;
      for (std::size_t j = 0; j < all.size(); ++j) place += value(j) > value(i) ? 1 : 0;
      places[i].first = std::min(places[i].first, place);
      places[i].second = std::max(places[i].second, place);
    }
  }
  return places;
}

TEST(ComparisonTest, PlacesAreThoseThatSomeValuesOfTheBandsGive) {
  std::mt19937 chance(7);
  std::uniform_real_distribution<double> lows(1, 1000), widths(1, 300);
  for (int round = 0; round < 100; ++round) {
    std::vector<Forecast> all;
    for (int i = 0; i < 5; ++i) {
      const double low = lows(chance), width = widths(chance);
      all.push_back(of_rate(low + width / 2, low, low + width));
    }
    std::vector<const Forecast*> given;
    for (const Forecast& f : all) given.push_back(&f);
    const auto expected = places_by_trial(all);
    for (const Standing& s : rank(Objective::kThroughput, given)) {
      EXPECT_EQ(s.first, expected[s.index].first) << "round " << round;
      EXPECT_EQ(s.last, expected[s.index].second) << "round " << round;
    }
  }
}

/// Cost and energy are judged over the longest span that is known: the run, the epoch, a sample.
TEST(ComparisonTest, AnObjectiveIsJudgedByTheLongestSpanThatIsKnown) {
  Forecast f = of_rate(100, 80, 125);
  f.job.gpus = 4;
  const auto figure = [&](Objective o) { return objective_figure(o, f); };
  EXPECT_DOUBLE_EQ(figure(Objective::kCost).value, 4 / 100.0) << "seconds of a GPU for a sample";
  EXPECT_DOUBLE_EQ(figure(Objective::kCost).low, 4 / 125.0) << "the fastest is the cheapest";
  EXPECT_DOUBLE_EQ(figure(Objective::kCost).high, 4 / 80.0);
  f.gpu_hours_per_epoch = exact(3, "");
  EXPECT_EQ(figure(Objective::kCost).value, 3);
  f.price_per_gpu_hour = 3600;
  EXPECT_DOUBLE_EQ(figure(Objective::kCost).value, 4 / 100.0) << "money for a sample";
  f.epoch_cost = exact(5, "");
  EXPECT_EQ(figure(Objective::kCost).value, 5);
  f.run_cost = exact(50, "");
  EXPECT_EQ(figure(Objective::kCost).value, 50);
  EXPECT_EQ(figure(Objective::kEnergy).value, 0) << "no TDP";
  f.energy.emplace();
  f.energy->joules_per_sample = exact(2, "");
  EXPECT_EQ(figure(Objective::kEnergy).value, 2);
  f.energy->epoch_kwh = exact(7, "");
  EXPECT_EQ(figure(Objective::kEnergy).value, 7);
  f.energy->run_kwh = exact(70, "");
  EXPECT_EQ(figure(Objective::kEnergy).value, 70);
  EXPECT_DOUBLE_EQ(figure(Objective::kEpoch).high, 1 / 80.0);
  f.epoch_s = exact(9, "");
  EXPECT_EQ(figure(Objective::kEpoch).value, 9);
}

}  // namespace
}  // namespace stoker
