#include "tune/goodput/goodput.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::tune {
namespace {

/// Gradient descent with an optimal step on noisy gradients of a quadratic, in expectation: the
/// loss to be gained per step is eps_max / (1 + noise / batch) of it.
double steps_to(double batch, double noise) {
  double loss = 1;
  double steps = 0;
  while (loss > 0.01) {
    loss *= 1 - 0.01 / (1 + noise / batch);
    ++steps;
  }
  return steps;
}

TEST(GoodputTest, OrdersAsSimulatedConvergenceDoes) {
  constexpr double kNoise = 800;
  std::vector<GoodputRow> rows;
  for (std::int64_t batch = 16; batch <= 8192; batch *= 2) {
    const auto b = static_cast<double>(batch);
    rows.push_back({batch, 1, true, b / (0.01 + 2e-5 * b), 1e-3});
  }
  const Goodput result = goodput(rows, kNoise);
  ASSERT_TRUE(result.soonest);
  double best = INFINITY;
  std::size_t fastest = 0;
  std::vector<double> times;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double b = rows[i].global_batch();
    times.push_back(steps_to(b, kNoise) * b / rows[i].samples_per_s);
    if (times.back() < best) best = times.back(), fastest = i;
  }
  EXPECT_EQ(*result.soonest, fastest);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(result.rows[i].time, times[i] / best, 0.02 * times[i] / best) << rows[i].batch;
  // The optimum of (a + c B)(1 + noise / B) is at sqrt(a noise / c).
  const double optimum = std::sqrt(0.01 * kNoise / 2e-5);
  EXPECT_LE(result.flat.low, optimum);
  EXPECT_GE(result.flat.high, optimum);
}

TEST(GoodputTest, WhatDoesNotFitTakesNoPart) {
  const Goodput result =
      goodput({{64, 1, true, 100, 1}, {128, 1, false, 1000, 1}, {64, 2, true, 150, 2}}, 1e4);
  EXPECT_EQ(*result.soonest, 2U);
  EXPECT_EQ(*result.cheapest, 0U);
  EXPECT_EQ(result.rows[1].time, 0);
  EXPECT_FALSE(goodput({}, 100).soonest);
}

}  // namespace
}  // namespace stoker::tune
