#include "rewrite/symbolic.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace stoker {
namespace {

constexpr std::int64_t kLimit = std::numeric_limits<std::int64_t>::max();

/// A few terms with small coefficients in three dimensions; terms may repeat a monomial.
Polynomial random_polynomial(Random& random) {
  std::vector<Monomial> terms;
  for (std::uint64_t n = random.below(5); terms.size() < n;) {
    Monomial term{static_cast<std::int64_t>(random.below(19)) - 9, {}};
    for (std::size_t d = 0; d < 3; ++d)
      term.exponents[d] = static_cast<std::uint8_t>(random.below(3));
    terms.push_back(term);
  }
  return Polynomial(std::move(terms));
}

DimensionValues random_point(Random& random) {
  DimensionValues at{};
  for (std::size_t d = 0; d < 3; ++d) at[d] = static_cast<std::int64_t>(random.below(9)) + 1;
  return at;
}

/// The value term by term; nothing here comes near 64 bits.
std::int64_t value_of(const Polynomial& p, const DimensionValues& at) {
  std::int64_t sum = 0;
  for (const Monomial& term : p.terms()) {
    std::int64_t product = term.coefficient;
    for (std::size_t d = 0; d < kMaxDimensions; ++d) {
      for (int power = 0; power < term.exponents[d]; ++power) product *= at[d];
    }
    sum += product;
  }
  return sum;
}

TEST(SymbolicSizes, AgreeWithArithmeticAtRandomPoints) {
  Random random(1);
  for (int round = 0; round < 3'000; ++round) {
    const Polynomial a = random_polynomial(random), b = random_polynomial(random);
    const DimensionValues at = random_point(random);
    const std::int64_t x = value_of(a, at), y = value_of(b, at);
    ASSERT_TRUE(*a.evaluate(at) == x) << round;
    ASSERT_TRUE(*(a + b).evaluate(at) == x + y) << round;
    ASSERT_TRUE(*(a * b).evaluate(at) == x * y) << round;
    ASSERT_TRUE(*scaled(a, 12, 4).evaluate(at) == 3 * x) << round;
    ASSERT_TRUE(*scaled(scaled(a, 6), 5, 6).evaluate(at) == 5 * x) << round;
    const std::size_t dimension = random.below(3);
    const auto factor = static_cast<std::int64_t>(random.below(4)) + 1;
    DimensionValues larger = at;
    larger[dimension] *= factor;
    ASSERT_TRUE(*with_dimension_scaled(a, dimension, factor).evaluate(at) == value_of(a, larger));
  }
}

TEST(SymbolicSizes, AreTheSameWhereTheyAreEqualEverywhere) {
  Random random(2);
  int same = 0;
  for (int round = 0; round < 2'000; ++round) {
    const Polynomial a = random_polynomial(random);
    const Polynomial b = round % 2 == 0 ? random_polynomial(random) : (a + a) + scaled(a, -1);
    // Two polynomials of degree 2 in each of three dimensions that agree on a grid of three values
    // each agree everywhere.
    bool equal = true;
    for (std::int64_t i = 1; i <= 27; ++i) {
      const DimensionValues at{i % 3 + 1, i / 3 % 3 + 1, i / 9 % 3 + 1};
      equal = equal && value_of(a, at) == value_of(b, at);
    }
    ASSERT_EQ(is_same(a, b), equal) << round;
    same += equal ? 1 : 0;
  }
  EXPECT_GE(same, 1'000);
}

TEST(SymbolicSizes, WhatLeavesSixtyFourBitsIsRefusedWhenItIsEvaluated) {
  const Polynomial huge(std::vector<Monomial>{{kLimit / 2 + 1, {1}}});
  const DimensionValues two{2};
  EXPECT_EQ(huge.evaluate(two), std::nullopt);
  EXPECT_EQ((huge + huge).evaluate(two), std::nullopt);
  EXPECT_EQ(scaled(huge, 4).evaluate(two), std::nullopt);
  EXPECT_EQ((huge * Polynomial(-4)).evaluate(two), std::nullopt);
  // A large coefficient that is divided as much as it is multiplied stays exact.
  EXPECT_EQ(scaled(Polynomial(kLimit / 8 * 8), 7, 8).evaluate(two), kLimit / 8 * 7);
}

TEST(SymbolicSizes, ZeroHasNoTerms) {
  const Polynomial p(std::vector<Monomial>{{3, {1}}, {2, {}}});
  EXPECT_TRUE(scaled(p, 0).terms().empty());
  EXPECT_TRUE((p * Polynomial()).terms().empty());
  EXPECT_TRUE(is_same(p + Polynomial(), p));
  EXPECT_EQ(Polynomial().evaluate({}), 0);
}

}  // namespace
}  // namespace stoker
