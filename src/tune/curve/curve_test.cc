#include "tune/curve/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace stoker::tune {
namespace {

/// Points at steps 1, 2, 3 ... with these scores.
std::vector<Point> points(const std::vector<double>& scores) {
  std::vector<Point> all;
  for (const double score : scores)
    all.push_back(
        {static_cast<double>(all.size()) + 1, 0.5 * static_cast<double>(all.size()), score});
  return all;
}

TEST(Curve, TheBestIsTheFirstOfEquals) {
  const auto curve = points({0.2, 0.7, 0.5, 0.7, 0.9});
  EXPECT_EQ(best_of(curve, 4), 1U);
  EXPECT_EQ(best_of(curve, 99), 4U);
  EXPECT_EQ(best_until(curve, 3.5), 0.7);
  EXPECT_EQ(best_until(curve, 0.5), std::nullopt);
  EXPECT_EQ(score_at(curve, 3), 0.5);
  EXPECT_EQ(score_at(curve, 99), 0.9);
  EXPECT_EQ(score_at({}, 1), std::nullopt);
}

TEST(Curve, NoiseIsWhatLiesAroundAStraightLine) {
  // A line has none, whatever its slope; scores that hop by 1 bend by 2 each time: 4 / 6.
  EXPECT_NEAR(noise_of(points({1, 3, 5, 7, 9, 11})).value(), 0, 1e-12);
  EXPECT_NEAR(noise_of(points({0, 1, 0, 1, 0})).value(), std::sqrt(4.0 / 6), 1e-12);
  EXPECT_EQ(noise_of(points({1, 2, 3, 4})), std::nullopt);
}

TEST(Curve, NoiseOfIndependentErrorsIsTheirDeviation) {
  Random random(7);
  std::vector<double> scores;
  for (int i = 0; i < 20'000; ++i) scores.push_back(0.001 * i + 0.3 * random.normal());
  EXPECT_NEAR(noise_of(points(scores)).value(), 0.3, 0.01);
}

TEST(Curve, NoiseIsThatOfTheLaterHalf) {
  std::vector<double> scores{5, -5, 5, -5, 5, -5};
  scores.insert(scores.end(), {1, 1, 1, 1, 1, 1});
  EXPECT_LT(noise_of(points(scores)).value(), 2.5);  // one bend of 6 at the border at most
  scores.insert(scores.end(), 12, 1);
  EXPECT_EQ(noise_of(points(scores)), 0);
}

TEST(Curve, WhatWentOnIsJoinedAtItsFirstStep) {
  Curve before, after;
  before.points = points({0.1, 0.2, 0.3, 0.4});
  before.marks = {{1, 1, 8}, {2, 2, 8}, {3, 3, 8}, {4, 4, 8}};
  after.points = {{3, 0, 0.35}, {5, 2, 0.5}};
  after.marks = {{3, 0, 8}, {5, 2, 8}};
  const Continued joined = continued(before, after);
  EXPECT_FALSE(joined.restarted);
  ASSERT_EQ(joined.curve.points.size(), 4U);
  EXPECT_EQ(joined.curve.points[1].score, 0.2);
  EXPECT_EQ(joined.curve.points[2].score, 0.35);     // step 3 was done again
  EXPECT_EQ(joined.curve.points.back().seconds, 4);  // two before step 3, two behind it
  EXPECT_EQ(joined.curve.last_step(), 5);
  EXPECT_EQ(joined.curve.marks.size(), 4U);
}

TEST(Curve, WhatBeganAnewReplacesIt) {
  Curve before, after;
  before.points = points({0.1, 0.2});
  after.points = points({0.3});
  EXPECT_TRUE(continued(before, after).restarted);
  EXPECT_EQ(continued(before, after).curve.points.size(), 1U);
  EXPECT_FALSE(continued({}, after).restarted);
  EXPECT_EQ(continued(before, {}).curve.points.size(), 2U);
}

TEST(Curve, TheRateIsOfSamplesOrOfStepsTimesTheBatch) {
  Curve curve;
  curve.marks = {{10, 1, 64}, {20, 2, 64}, {30, 3, 64}};
  EXPECT_EQ(rate_of(curve, std::nullopt), 64);  // 64 samples a second since the first report
  for (Mark& mark : curve.marks) mark.samples = 0;
  EXPECT_EQ(rate_of(curve, std::nullopt), std::nullopt);
  EXPECT_EQ(rate_of(curve, 32), 320);  // ten steps of 32 a second
}

TEST(Curve, ScoresAreShownAsTheirMetric) {
  const Objective loss{"loss", false};
  EXPECT_EQ(loss.score(0.25), -0.25);
  EXPECT_EQ(loss.text(-0.25), "0.25");
  EXPECT_EQ(loss.text(0), "0");
  EXPECT_EQ(Objective{}.text(0.84123), "0.8412");
}

}  // namespace
}  // namespace stoker::tune
