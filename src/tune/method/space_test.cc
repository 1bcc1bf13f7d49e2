#include "tune/method/space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "study/definition/values.h"

namespace stoker::tune {
namespace {

using Words = std::vector<std::string>;

TEST(Space, PowersOfTenAreAnyNumberBetween) {
  const auto rates = parse_dimension("lr", "1e-5..1e-1");
  ASSERT_TRUE(rates);
  EXPECT_TRUE(rates->continuous());
  EXPECT_DOUBLE_EQ(rates->low, 1e-5);
  EXPECT_DOUBLE_EQ(rates->high, 1e-1);
  EXPECT_EQ(parse_dimension("batch", "64..512x2")->values, (Words{"64", "128", "256", "512"}));
  EXPECT_EQ(parse_dimension("optimizer", "sgd,adam")->values, (Words{"sgd", "adam"}));
  EXPECT_FALSE(parse_dimension("lr", "1e-1..1e-5"));
}

TEST(Space, CombinationsAreTheProductInTheOrderOfWriting) {
  const std::vector<Dimension> space{parse_dimension("batch", "32,64").value(),
                                     parse_dimension("lr", "1e-3..1e-1").value()};
  const std::vector<Words> expected{{"32", "0.001"}, {"32", "0.01"}, {"32", "0.1"},
                                    {"64", "0.001"}, {"64", "0.01"}, {"64", "0.1"}};
  EXPECT_EQ(combinations(space), expected);
  EXPECT_EQ(combinations({}), std::vector<Words>{{}});
}

TEST(Space, DrawsAreUniformOnTheLogarithmicScale) {
  const std::vector<Dimension> space{parse_dimension("lr", "1e-4..1e0").value(),
                                     parse_dimension("optimizer", "sgd,adam,lion").value()};
  constexpr int kDraws = 12'000;
  std::vector<int> decades(4), names(3);
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Words values = draw(space, 3, static_cast<std::uint64_t>(i));
    const double exponent = std::log10(study::as_number(values[0]).value());
    ASSERT_GE(exponent, -4 - 1e-9);
    ASSERT_LE(exponent, 0);
    ++decades[static_cast<std::size_t>(std::min(3.0, exponent + 4))];
    sum += exponent;
    for (std::size_t n = 0; n < 3; ++n) names[n] += space[1].values[n] == values[1] ? 1 : 0;
  }
  // Binomial: a quarter of the draws within 4.5 standard deviations, sqrt(n p (1 - p)) = 47.
  for (const int count : decades) EXPECT_NEAR(count, kDraws / 4, 213);
  for (const int count : names) EXPECT_NEAR(count, kDraws / 3, 232);
  EXPECT_NEAR(sum / kDraws, -2, 4.5 * 4 / std::sqrt(12.0 * kDraws));
}

TEST(Space, ADrawDependsOnSeedAndIndexAlone) {
  const std::vector<Dimension> space{parse_dimension("lr", "1e-4..1e0").value()};
  EXPECT_EQ(draw(space, 1, 5), draw(space, 1, 5));
  std::set<Words> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (std::uint64_t i = 0; i < 8; ++i) seen.insert(draw(space, seed, i));
  }
  EXPECT_GE(seen.size(), 63U);  // numbers have four digits: two may meet
}

}  // namespace
}  // namespace stoker::tune
