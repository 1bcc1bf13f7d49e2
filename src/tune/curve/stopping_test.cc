#include "tune/curve/stopping.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace stoker::tune {
namespace {

const Objective kAccuracy{};

std::vector<Point> points_of(const std::vector<double>& scores, double every = 10) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < scores.size(); ++i)
    points.push_back({every * static_cast<double>(i + 1), 0, scores[i]});
  return points;
}

TEST(StoppingTest, PatienceCountsFromTheLastImprovement) {
  const auto points = points_of({0.1, 0.3, 0.2, 0.3, 0.305, 0.29});
  StopRules rules{.patience = 3};
  EXPECT_FALSE(out_of_patience(points, 4, rules, kAccuracy)) << "0.3 is two evaluations old";
  EXPECT_FALSE(out_of_patience(points, 5, rules, kAccuracy)) << "0.305 is better";
  rules.min_delta = 0.01;
  EXPECT_TRUE(out_of_patience(points, 5, rules, kAccuracy)) << "but not by enough";
  rules.patience = 0;
  EXPECT_FALSE(out_of_patience(points, 6, rules, kAccuracy));
}

std::vector<Point> saturating(double limit, double scale, std::size_t count) {
  std::vector<double> scores;
  for (std::size_t i = 1; i <= count; ++i)
    scores.push_back(limit * (1 - std::exp(-static_cast<double>(i) / scale)));
  return points_of(scores);
}

TEST(StoppingTest, OneThatWillNotCatchUpIsStopped) {
  const auto best = saturating(0.9, 5, 40), slow = saturating(0.5, 5, 40);
  const Reference reference{&best, "lr=0.01"};
  std::size_t stopped_at = 0;
  for (std::size_t n = 1; n <= slow.size() && stopped_at == 0; ++n) {
    if (will_not_catch_up(slow, n, reference, {}, kAccuracy)) stopped_at = n;
  }
  EXPECT_GE(stopped_at, 8U) << "a fifth of the reference has to be seen";
  EXPECT_LE(stopped_at, 20U);
}

TEST(StoppingTest, ALateWinnerIsNotStopped) {
  // Slower at first and better in the end, as small learning rates are.
  const auto early = saturating(0.7, 4, 60), late = saturating(0.95, 25, 60);
  for (std::size_t n = 1; n <= late.size(); ++n)
    EXPECT_FALSE(will_not_catch_up(late, n, {&early, "lr=0.1"}, {}, kAccuracy)) << n;
}

TEST(StoppingTest, NoisyEqualsAreSeldomStopped) {
  // 200 pairs of equal curves with noise of a fiftieth of their height: one of the two may be cut
  // by chance, and loses what the noise is, not more.
  int stopped = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    auto a = saturating(0.8, 12, 40), b = a;
    for (auto* curve : {&a, &b}) {
      for (Point& point : *curve) point.score += 0.016 * random.normal();
    }
    for (std::size_t n = 1; n <= b.size(); ++n) {
      if (!will_not_catch_up(b, n, {&a, "other"}, {}, kAccuracy)) continue;
      if (b[n - 1].step < 200) ++stopped;  // in the first half
      break;
    }
  }
  EXPECT_LE(stopped, 10);
}

TEST(StoppingTest, TheMedianRuleIsTheOneOfBooks) {
  std::vector<Curve> others(5);
  const double at[] = {0.1, 0.2, 0.3, 0.4, 0.5};
  for (std::size_t i = 0; i < 5; ++i) others[i].points = points_of({at[i], at[i] + 0.1});
  std::vector<const Curve*> known;
  for (const Curve& c : others) known.push_back(&c);
  const MedianRule rule{.startup = 5};
  EXPECT_TRUE(below_median(points_of({0.29}), 1, known, rule, kAccuracy));
  EXPECT_FALSE(below_median(points_of({0.3}), 1, known, rule, kAccuracy)) << "the median itself";
  EXPECT_FALSE(below_median(points_of({0.5, 0.1}), 2, known, rule, kAccuracy)) << "best so far";
  EXPECT_FALSE(below_median(points_of({0.1}), 1, known, {.startup = 6}, kAccuracy));
  EXPECT_FALSE(below_median(points_of({0.1}), 1, known, {.startup = 5, .warm_up = 20}, kAccuracy));
  EXPECT_FALSE(below_median(points_of({0.1, 0.1, 0.1}), 3, known, rule, kAccuracy))
      << "nobody came so far";
}

TEST(StoppingTest, NoiseIsThatAroundTheTrend) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> scores;
    for (int s = 0; s < 60; ++s) scores.push_back(0.01 * s + 0.05 * random.normal());
    const double noise = *noise_of(points_of(scores));
    sum += noise * noise;
  }
  EXPECT_NEAR(std::sqrt(sum / 200), 0.05, 0.003);
  EXPECT_FALSE(noise_of(points_of({1, 2, 3, 4})));
}

TEST(CurveTest, ARunThatGoesOnAndOneThatBeginsAnew) {
  Curve before, after;
  for (const double step : {10.0, 20.0, 30.0}) before.marks.push_back({step, 0, 0});
  before.points = points_of({0.1, 0.2, 0.3});
  after.marks = {{30, 0, 0}, {40, 0, 0}};
  after.points = {{30, 0, 0.35}, {40, 0, 0.4}};
  const Continued on = continued(before, after);
  EXPECT_FALSE(on.restarted);
  ASSERT_EQ(on.curve.points.size(), 4U);
  EXPECT_EQ(on.curve.points[2].score, 0.35) << "the later run counts from where it began";
  after.marks = {{10, 0, 0}};
  EXPECT_TRUE(continued(before, after).restarted);
}

}  // namespace
}  // namespace stoker::tune
