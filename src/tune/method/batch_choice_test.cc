#include "tune/method/batch_choice.h"

#include <gtest/gtest.h>

namespace stoker::tune {
namespace {

std::vector<BatchFigure> of(const std::vector<std::pair<double, double>>& rates) {
  std::vector<BatchFigure> figures;
  for (const auto& [batch, rate] : rates)
    figures.push_back({std::to_string(static_cast<int>(batch)), batch, rate});
  return figures;
}

TEST(BatchChoiceTest, TheSmallestThatReachesTheThreshold) {
  const auto figures = of({{1, 50}, {2, 89}, {4, 91}, {8, 100}, {16, 99}});
  EXPECT_EQ(choose_batch(figures, {BatchBy::kThroughput, 0.9})->index, 2);
  EXPECT_EQ(choose_batch(figures, {BatchBy::kThroughput, 0.99})->index, 3);
  EXPECT_EQ(choose_batch(figures, {BatchBy::kThroughput, 0.5})->index, 0);
}

TEST(BatchChoiceTest, WhatDoesNotFitCountsForNothing) {
  auto figures = of({{1, 50}, {2, 89}, {4, 200}});
  figures[2].fits = false;
  EXPECT_EQ(choose_batch(figures, {BatchBy::kThroughput, 0.9})->index, 1);
  for (BatchFigure& f : figures) f.fits = false;
  EXPECT_FALSE(choose_batch(figures, {BatchBy::kThroughput, 0.9}));
  EXPECT_FALSE(choose_batch(of({{1, 1}}), {BatchBy::kUtilisation, 0.9})) << "not known";
}

TEST(BatchChoiceTest, TheOtherFigureIsNamedWhereItDiffers) {
  auto figures = of({{1, 95}, {2, 100}});
  figures[0].utilisation = 0.4;
  figures[1].utilisation = 0.8;
  const auto choice = choose_batch(figures, {BatchBy::kThroughput, 0.9});
  EXPECT_NE(choice->reason.find("by utilisation it would be 2"), std::string::npos);
}

TEST(BatchChoiceTest, TheFitOfAStepIsExactOnExactFigures) {
  std::vector<std::pair<double, double>> rates;
  for (const double b : {8.0, 32.0, 64.0, 256.0}) rates.emplace_back(b, b / (0.004 + 2e-5 * b));
  const auto fit = fit_steps(of(rates));
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->fixed_s, 0.004, 1e-9);
  EXPECT_NEAR(fit->each_s, 2e-5, 1e-12);
  EXPECT_LT(fit->error, 1e-9);
}

TEST(BatchChoiceTest, TheRestIsLeftOutOnlyWhereItCannotMatter) {
  const auto rate = [](double b) { return b / (0.001 + 1e-4 * b); };
  // At 256 a step has reached 96 % of its limit: 128, with 93 %, is chosen whatever follows.
  const auto flat = of({{64, rate(64)}, {128, rate(128)}, {256, rate(256)}});
  EXPECT_TRUE(rest_is_flat(flat, {512, 1024}, 0.9));
  const auto rising = of({{1, rate(1)}, {2, rate(2)}, {4, rate(4)}});
  EXPECT_FALSE(rest_is_flat(rising, {8, 1024}, 0.9));
  EXPECT_FALSE(rest_is_flat(flat, {}, 0.9)) << "nothing is left";
  // A kink that the fit cannot follow decides nothing.
  EXPECT_FALSE(rest_is_flat(of({{64, 100}, {128, 40}, {256, 130}}), {512}, 0.9));
}

}  // namespace
}  // namespace stoker::tune
