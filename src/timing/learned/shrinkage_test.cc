#include "timing/learned/shrinkage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace stoker {
namespace {

ShrinkagePriors wide() { return {1.0, 1.0, 1.0, 0.1, 6}; }

TEST(Shrinkage, WithoutRowsEverythingIsThePrior) {
  const ShrinkageFit fit = fit_shrinkage({}, {}, 2, {});
  EXPECT_DOUBLE_EQ(fit.device.mean, 0);
  EXPECT_NEAR(fit.device.variance, 0.12 * 0.12, 1e-12);
  EXPECT_NEAR(fit.groups[1].variance, 0.12 * 0.12 + 0.10 * 0.10, 1e-12);
}

/// One row against the closed form: mean = value · prior variance / (prior variance + noise).
TEST(Shrinkage, OneRowByHand) {
  const ShrinkagePriors priors{0.3, 0.2, 0.1, 0.1, 1e9};
  const ShrinkageFit fit = fit_shrinkage({{0, 0.05, 0.0004}}, {0}, 1, priors);
  const double prior = 0.09 + 0.04 + 0.01, noise = 0.0004 + 0.01;
  EXPECT_NEAR(fit.parts[0].mean, 0.05 * prior / (prior + noise), 1e-9);
  EXPECT_NEAR(fit.parts[0].variance, prior * noise / (prior + noise), 1e-9);
  EXPECT_NEAR(fit.device.mean, 0.05 * 0.09 / (prior + noise), 1e-9);
}

/// Truths drawn from the model are found again, and the claimed variance is that of the errors.
TEST(Shrinkage, RecoversKnownFactorsWithTheVarianceItClaims) {
  std::mt19937 random(7);
  const ShrinkagePriors priors;
  double squares = 0, claimed = 0;
  int count = 0;
  const auto normal = [&](double sigma) { return std::normal_distribution<>(0, sigma)(random); };
  for (int run = 0; run < 300; ++run) {
    const double device = normal(priors.device);
    const double groups[] = {normal(priors.group), normal(priors.group)};
    std::vector<LogRatio> rows;
    std::vector<double> truth;
    for (std::size_t part = 0; part < 4; ++part) {
      truth.push_back(device + groups[part % 2] + normal(priors.part));
      for (int i = 0; i < 6; ++i)
        rows.push_back({part, truth.back() + normal(priors.within), 1e-6});
    }
    const ShrinkageFit fit = fit_shrinkage(rows, {0, 1, 0, 1}, 2, priors);
    for (std::size_t part = 0; part < 4; ++part) {
      squares += std::pow(fit.parts[part].mean - truth[part], 2);
      claimed += fit.parts[part].variance;
      ++count;
    }
  }
  EXPECT_LT(std::sqrt(squares / count), 0.06);
  EXPECT_NEAR(std::sqrt(squares / claimed), 1.0, 0.15);
}

TEST(Shrinkage, MoreRowsNeverKnowLess) {
  std::vector<LogRatio> rows;
  double before = HUGE_VAL;
  for (int n = 1; n <= 40; ++n) {
    rows.push_back({0, 0.2, 0.01});
    const double variance = fit_shrinkage(rows, {0}, 1, {}).parts[0].variance;
    EXPECT_LT(variance, before);
    before = variance;
  }
}

TEST(Shrinkage, OneWildRowAmongTenMovesLittle) {
  std::vector<LogRatio> rows(10, LogRatio{0, 0.1, 0.0001});
  const double sound = fit_shrinkage(rows, {0}, 1, wide()).parts[0].mean;
  rows.push_back({0, std::log(20.0), 0.0001});
  EXPECT_NEAR(fit_shrinkage(rows, {0}, 1, wide()).parts[0].mean, sound, 0.12);
}

/// Steps that are two thirds of one part and one third of the other, and the reverse, tell both.
TEST(Shrinkage, SumsAreTakenApart) {
  std::vector<LogRatio> rows;
  const double a = 0.3, b = -0.1;
  for (int i = 0; i < 20; ++i) {
    rows.push_back({0, 2 * a / 3 + b / 3, 1e-6, {{1, 1.0 / 3}}});
    rows.push_back({0, a / 3 + 2 * b / 3, 1e-6, {{1, 2.0 / 3}}});
  }
  const ShrinkageFit fit = fit_shrinkage(rows, {0, 0}, 1, wide());
  EXPECT_NEAR(fit.parts[0].mean, a, 0.01);
  EXPECT_NEAR(fit.parts[1].mean, b, 0.01);
}

/// The least of the penalised squares over a grid, for two parts of one group: what the solver
/// claims to find.
TEST(Shrinkage, AgreesWithABruteForceSearch) {
  const ShrinkagePriors priors{0.2, 0.1, 0.15, 0.1, 1e9};
  const std::vector<LogRatio> rows{
      {0, 0.10, 0.001}, {0, 0.14, 0.004}, {1, -0.05, 0.002}, {0, 0.06, 0.001, {{1, 0.4}}}};
  const ShrinkageFit fit = fit_shrinkage(rows, {0, 0}, 1, priors);
  // Prior covariance of the two sums: device and group in common.
  const double shared = 0.04 + 0.01, own = shared + 0.0225;
  const double det = own * own - shared * shared;
  double best = HUGE_VAL, a = 0, b = 0;
  for (double x = -0.2; x <= 0.3; x += 0.0005) {
    for (double y = -0.2; y <= 0.3; y += 0.0005) {
      double loss = (own * x * x - 2 * shared * x * y + own * y * y) / det;
      for (const LogRatio& row : rows) {
        const double share = row.others.empty() ? 0 : row.others[0].second;
        const double wx = row.part == 0 ? 1 - share : 0, wy = row.part == 1 ? 1 : share;
        const double variance = row.variance + 0.01 * (wx * wx + wy * wy);
        loss += std::pow(row.value - wx * x - wy * y, 2) / variance;
      }
      if (loss < best) best = loss, a = x, b = y;
    }
  }
  EXPECT_NEAR(fit.parts[0].mean, a, 0.001);
  EXPECT_NEAR(fit.parts[1].mean, b, 0.001);
}

TEST(Shrinkage, APartWithoutRowsTakesItsGroupsMean) {
  std::vector<LogRatio> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({0, 0.3, 0.0001});
  const ShrinkageFit fit = fit_shrinkage(rows, {0}, 2, {});
  EXPECT_GT(fit.groups[0].mean, fit.groups[1].mean);
  EXPECT_GT(fit.groups[1].mean, 0.0);  // the device's share
  EXPECT_GT(fit.groups[0].variance, fit.parts[0].variance);
}

}  // namespace
}  // namespace stoker
