#include "tune/curve/rate_range.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace stoker::tune {
namespace {

/// Rates from 1e-6 to 10 in 100 steps; the loss falls as a step in the logarithm around `middle`
/// and explodes above `edge`.
RangeRun planted(double middle, double edge, double noise, std::uint64_t seed) {
  Random random(seed);
  RangeRun run;
  for (int i = 0; i < 100; ++i) {
    const double rate = std::pow(10, -6 + 7.0 * i / 99);
    const double falls = 1.5 / (1 + std::exp(-3 * std::log10(rate / middle)));
    const double rises = rate > edge ? 3 * (rate / edge - 1) : 0;
    run.push_back({rate, 2.3 - falls + rises + noise * random.normal()});
  }
  return run;
}

TEST(RangeTest, FindsThePlantedSlopeAndMinimum) {
  for (const double middle : {1e-4, 1e-3, 1e-2}) {
    std::vector<RangeRun> runs;
    for (std::uint64_t seed = 0; seed < 3; ++seed)
      runs.push_back(planted(middle, 100 * middle, 0.02, seed));
    const RangeResult result = range_test(runs);
    ASSERT_TRUE(result.low) << result.reason;
    EXPECT_EQ(result.runs, 3U);
    // The average lags behind by some steps, each a factor of 1.18.
    EXPECT_LT(std::fabs(std::log10(result.steepest / middle)), 0.6) << result.steepest;
    EXPECT_GT(result.least, 20 * middle);
    EXPECT_LT(result.least, 300 * middle);
    EXPECT_LE(*result.low, *result.high);
  }
}

TEST(RangeTest, TheSlopeIsByTheLogarithmOfTheRate) {
  // Equal falls a decade: by the rate itself the first steps would be steepest by far.
  RangeRun run;
  for (int i = 0; i < 100; ++i) {
    const double decade = -6 + 7.0 * i / 99;
    run.push_back({std::pow(10, decade), 10 - (decade < -2 ? 0.1 : 1) * (decade + 6)});
  }
  EXPECT_GT(range_test({run}).steepest, 5e-3);
}

TEST(RangeTest, NoSuggestionWhereNothingFalls) {
  std::vector<RangeRun> flat(1);
  Random random(1);
  for (int i = 0; i < 100; ++i)
    flat[0].push_back({std::pow(10, -6 + 0.07 * i), 2 + 0.1 * random.normal()});
  const RangeResult result = range_test(flat);
  EXPECT_FALSE(result.low);
  EXPECT_EQ(result.reason, "the loss never falls by more than its noise");
  RangeRun rising;
  for (int i = 0; i < 100; ++i) rising.push_back({std::pow(10, -6 + 0.07 * i), 1 + 0.01 * i});
  EXPECT_FALSE(range_test({rising}).low);
}

TEST(RangeTest, NoiseAloneIsSeldomTakenForAFall) {
  // The first smoothed points are of few, and their noise is easily taken for a fall.
  for (const int count : {12, 40, 100}) {
    int suggested = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
      Random random(seed);
      RangeRun run;
      for (int i = 0; i < count; ++i) run.push_back({std::pow(10, -6 + 0.07 * i), random.normal()});
      suggested += range_test({run}).low ? 1 : 0;
    }
    EXPECT_LE(suggested, 12) << count;  // 3 %
  }
}

TEST(RangeTest, AFallOfTwiceTheNoiseOfAStepIsSeen) {
  int suggested = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    suggested += range_test({planted(1e-3, 1e-1, 0.7, seed)}).low ? 1 : 0;  // falls by 1.5
  EXPECT_GE(suggested, 90);
}

TEST(RangeTest, NoSuggestionFromFewPoints) {
  RangeRun run = planted(1e-4, 1e-2, 0, 1);
  for (std::size_t i = 7; i < run.size(); ++i) run[i].loss = std::nan("");
  const RangeResult result = range_test({run});
  EXPECT_FALSE(result.low);
  EXPECT_EQ(result.reason, "7 finite points came, and 10 are needed");
  EXPECT_FALSE(range_test({}).low);
}

TEST(RangeTest, ASingleSpikeIsNoSlope) {
  RangeRun run = planted(1e-2, 1, 0.01, 5);
  run[20].loss += 3;  // the fall behind it is no learning
  const RangeResult spiked = range_test({run});
  const RangeResult plain = range_test({planted(1e-2, 1, 0.01, 5)});
  ASSERT_TRUE(plain.low);
  ASSERT_TRUE(spiked.low);
  EXPECT_LT(std::fabs(std::log10(plain.least / spiked.least)), 0.5);
}

}  // namespace
}  // namespace stoker::tune
