#include "step/polynomial.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace stoker {
namespace {

__extension__ using Wide = __int128;

/// A polynomial whose value and all that is added on the way are below 2^120.
struct Drawn {
  Polynomial polynomial;
  DimensionValues at{};
  Wide value = 0;
  bool narrow = true;  ///< no term and no sum leaves 64 bits
};

bool fits(Wide value) {
  return value >= std::numeric_limits<std::int64_t>::min() &&
         value <= std::numeric_limits<std::int64_t>::max();
}

std::int64_t of_random_size(Random& random, int most_bits) {
  const auto bits = random.below(static_cast<std::uint64_t>(most_bits)) + 1;
  const auto size = static_cast<std::int64_t>(random.next() >> (64 - bits));
  return random.below(2) == 0 ? size : -size;
}

Drawn drawn(Random& random) {
  Drawn d;
  for (std::int64_t& value : d.at) value = std::abs(of_random_size(random, 22));
  std::vector<Monomial> terms(random.below(6));
  for (Monomial& term : terms) {
    term.coefficient = of_random_size(random, 40);
    Wide product = term.coefficient;
    for (std::uint64_t power = random.below(4); power > 0; --power) {
      const auto dimension = random.below(kMaxDimensions);
      ++term.exponents[dimension];
    }
    for (std::size_t i = 0; i < kMaxDimensions; ++i) {
      for (int power = 0; power < term.exponents[i]; ++power) {
        product *= d.at[i];
        d.narrow = d.narrow && fits(product);
      }
    }
    d.value += product;
    d.narrow = d.narrow && fits(d.value);
  }
  d.polynomial = Polynomial(std::move(terms));
  return d;
}

TEST(Polynomials, HaveTheValueOfArithmeticInTwiceTheWidth) {
  Random random(1);
  int wide = 0, narrow = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Drawn d = drawn(random);
    const auto value = d.polynomial.evaluate(d.at);
    if (!fits(d.value)) {
      ++wide;
      EXPECT_EQ(value, std::nullopt);
    } else if (d.narrow) {
      ++narrow;
      ASSERT_TRUE(value.has_value());
      EXPECT_EQ(*value, static_cast<std::int64_t>(d.value));
    } else if (value) {
      EXPECT_EQ(*value, static_cast<std::int64_t>(d.value));
    }
  }
  EXPECT_GT(wide, 500);
  EXPECT_GT(narrow, 5'000);
}

TEST(Polynomials, AreConstantWhereNoDimensionChangesThem) {
  Random random(2);
  for (int i = 0; i < 2'000; ++i) {
    const Drawn d = drawn(random);
    if (!d.polynomial.is_constant()) continue;
    DimensionValues other = d.at;
    for (std::int64_t& value : other) value += 17;
    EXPECT_EQ(d.polynomial.evaluate(other), d.polynomial.evaluate(d.at));
  }
}

}  // namespace
}  // namespace stoker
