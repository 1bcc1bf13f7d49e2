#include "study/expectation/correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace stoker::study {
namespace {

Banded banded(double value, double share) {
  return {value, value / (1 + share), value * (1 + share)};
}

TEST(Correction, AForecastStandsUntilSomethingIsMeasured) {
  const Correction none;
  const Correction::Prior prior{{"32"}, banded(100, 0.2)};
  EXPECT_EQ(none.expect(prior)->value, 100);
  EXPECT_NEAR(none.expect(prior)->high, 120, 1e-9);
  EXPECT_FALSE(none.expect({{"32"}}).has_value());
}

TEST(Correction, ASlowMachineIsSlowForAll) {
  Correction c;
  c.learn({{"32", "a"}, banded(100, 0.3)}, 50);
  c.learn({{"64", "a"}, banded(180, 0.3)}, 92);
  c.learn({{"128", "b"}, banded(300, 0.3)}, 149);
  const Banded other = *c.expect({{"256", "b"}, banded(400, 0.3)});
  EXPECT_NEAR(other.value, 205, 25);
  EXPECT_LT(other.low, 200);
  EXPECT_GT(other.high, 205);
  EXPECT_LT(other.high, 300);  // surer than the forecast alone, which would have said 520
}

TEST(Correction, WhatBelongsToAValueStaysWithIt) {
  Correction c;
  for (const char* batch : {"32", "64", "128", "256"}) {
    c.learn({{batch, "old"}, banded(100, 0.5)}, 40);
    c.learn({{batch, "new"}, banded(100, 0.5)}, 100);
  }
  const double slow = c.expect({{"512", "old"}, banded(100, 0.5)})->value;
  const double fast = c.expect({{"512", "new"}, banded(100, 0.5)})->value;
  EXPECT_LT(slow, 60);
  EXPECT_GT(fast, 80);
}

TEST(Correction, SurprisesWidenAllBands) {
  Correction steady, wild;
  Random chance(1);
  for (int i = 0; i < 8; ++i) {
    const std::vector<std::string> values{std::to_string(i * 37), i % 2 == 0 ? "x" : "y"};
    steady.learn({values, banded(100, 0.1)}, 100 * std::exp(0.03 * chance.normal()));
    wild.learn({values, banded(100, 0.1)}, 100 * std::exp(1.0 * chance.normal()));
  }
  const Correction::Prior next{{"1000", "x"}, banded(100, 0.1)};
  const Banded narrow = *steady.expect(next), wide = *wild.expect(next);
  EXPECT_GT(wide.high / wide.low, 3 * narrow.high / narrow.low);
}

TEST(Correction, WithoutAForecastMeasurementsForetell) {
  Correction c;
  c.learn({{"1"}, std::nullopt, 0.01}, 12);
  EXPECT_FALSE(c.expect({{"2"}, std::nullopt, 0.02}).has_value());
  c.learn({{"2"}, std::nullopt, 0.02}, 24);
  const Banded third = *c.expect({{"4"}, std::nullopt, 0.04});
  EXPECT_NEAR(third.value, 48, 12);
  EXPECT_GT(third.high / third.low, 1.2);
}

/// Forecasts that err as the model says: bands have to hold about nine in ten.
TEST(Correction, BandsHoldWhatTheyPromise) {
  Random chance(7);
  int inside = 0, all = 0;
  for (int study = 0; study < 60; ++study) {
    const double deviation = 0.15, common = std::sqrt(0.4) * deviation * chance.normal();
    double of_batch[4], of_kind[2];
    for (double& one : of_batch) one = std::sqrt(0.2) * deviation * chance.normal();
    for (double& one : of_kind) one = std::sqrt(0.2) * deviation * chance.normal();
    Correction c;
    int number = 0;
    for (int batch = 0; batch < 4; ++batch) {
      for (int kind = 0; kind < 2; ++kind) {
        const double half = std::exp(1.645 * deviation);
        const Correction::Prior prior{{"b" + std::to_string(batch), "k" + std::to_string(kind)},
                                      Banded{100, 100 / half, 100 * half}};
        const double measured =
            100 * std::exp(common + of_batch[batch] + of_kind[kind] +
                           std::sqrt(0.2) * deviation * chance.normal() + 0.05 * chance.normal());
        if (++number > 2) {
          const Banded band = *c.expect(prior);
          inside += band.low <= measured && measured <= band.high ? 1 : 0;
          ++all;
        }
        c.learn(prior, measured);
      }
    }
  }
  const double share = static_cast<double>(inside) / all;
  EXPECT_GT(share, 0.85);
  EXPECT_LT(share, 0.97);
}

TEST(Correction, ASumIsSurerThanItsPartsAndNotAsSureAsIndependentOnes) {
  const Correction none;
  std::vector<Correction::Prior> priors;
  for (int i = 0; i < 100; ++i) priors.push_back({{std::to_string(i), "v"}, banded(10, 0.3)});
  const Banded sum = *none.sum(priors);
  EXPECT_DOUBLE_EQ(sum.value, 1000);
  EXPECT_GT(sum.low, 1000 / 1.301);
  EXPECT_LT(sum.low, 1000 / 1.1);
}

}  // namespace
}  // namespace stoker::study
