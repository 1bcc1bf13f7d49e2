#include "study/findings/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "study/findings/scaling.h"

namespace stoker::study {
namespace {

/// Probability that Student's variable is at most x, by Simpson's rule over its density.
double below(double x, double degrees) {
  const double scale = std::exp(std::lgamma((degrees + 1) / 2) - std::lgamma(degrees / 2)) /
                       std::sqrt(degrees * M_PI);
  constexpr int kParts = 20'000;
  double sum = 0;
  for (int i = 0; i <= kParts; ++i) {
    const double at = x * i / kParts;
    const double weight = i == 0 || i == kParts ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * scale * std::pow(1 + at * at / degrees, -(degrees + 1) / 2);
  }
  return 0.5 + sum * x / kParts / 3;
}

TEST(StudentsT, LeavesAFortiethOnEachSide) {
  for (const std::int64_t degrees : {1, 2, 3, 5, 9, 17, 29, 30, 31, 40, 75, 200, 5'000})
    EXPECT_NEAR(below(student_t(degrees), static_cast<double>(degrees)), 0.975, 2e-4) << degrees;
}

TEST(MeanIntervals, HoldTheMeanNineteenTimesInTwenty) {
  Random random(7);
  for (const int count : {2, 3, 6, 20}) {
    constexpr int kTries = 4'000;
    int held = 0;
    for (int i = 0; i < kTries; ++i) {
      std::vector<double> values(static_cast<std::size_t>(count));
      for (double& value : values) value = 5 + 2 * random.normal();
      const MeanInterval m = mean_interval(values);
      held += *m.low <= 5 && 5 <= *m.high ? 1 : 0;
    }
    EXPECT_NEAR(held / static_cast<double>(kTries), 0.95, 0.015) << count << " values";
  }
}

double squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& targets,
               const std::vector<double>& coefficients) {
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    double residual = targets[r];
    for (std::size_t i = 0; i < coefficients.size(); ++i) residual -= coefficients[i] * rows[r][i];
    sum += residual * residual;
  }
  return sum;
}

TEST(LeastSquares, NoStepInAnyDirectionIsBetter) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const auto columns = 1 + random.below(4);
    std::vector<std::vector<double>> rows(columns + 1 + random.below(20));
    std::vector<double> targets;
    for (auto& row : rows) {
      for (std::size_t c = 0; c < columns; ++c)
        row.push_back(random.normal() * std::pow(10, static_cast<double>(c) * 2 - 3));
      targets.push_back(random.normal());
    }
    const auto found = least_squares(rows, targets);
    ASSERT_TRUE(found.has_value());
    const double least = squares(rows, targets, *found);
    for (std::size_t c = 0; c < columns; ++c) {
      for (const double way : {-1e-3, 1e-3}) {
        auto moved = *found;
        moved[c] +=
            way * std::max(std::abs(moved[c]), std::pow(10, 3 - 2.0 * static_cast<double>(c)));
        EXPECT_GE(squares(rows, targets, moved), least * (1 - 1e-9));
      }
    }
  }
}

TEST(LeastSquares, ColumnsThatSayTheSameDecideNothing) {
  EXPECT_FALSE(least_squares({{1, 2}, {2, 4}, {3, 6}}, {1, 2, 3}).has_value());
  EXPECT_FALSE(least_squares({{1, 0}, {2, 0}, {3, 0}}, {1, 2, 3}).has_value());
  EXPECT_FALSE(least_squares({{1, 2}}, {1}).has_value());
  EXPECT_FALSE(least_squares({}, {}).has_value());
}

using Points = std::vector<std::pair<double, double>>;

TEST(ScalingLaws, PlantedOnesComeBack) {
  Random random(5);
  for (int i = 0; i < 200; ++i) {
    const ScalingLaw planted{random.uniform(1, 1e4), random.uniform(0.01, 0.3),
                             i % 2 == 0 ? 0 : random.uniform(0.002, 0.05)};
    Points points;
    for (const double n : {1, 2, 4, 8, 16}) points.emplace_back(n, planted.at(n));
    const auto law = fit_scaling(points);
    ASSERT_TRUE(law.has_value());
    EXPECT_NEAR(law->first / planted.first, 1, 1e-6);
    EXPECT_NEAR(law->contention, planted.contention, 1e-6);
    EXPECT_NEAR(law->coherence, planted.coherence, 1e-6);
    EXPECT_NEAR(law->error, 0, 1e-6);
    // What is told of the law is true of its curve.
    double most = 0;
    for (double n = 1; n < 2'000; n *= 1.01) most = std::max(most, law->at(n));
    EXPECT_LE(most, law->limit() * (1 + 1e-9));
    if (planted.coherence > 0) {
      EXPECT_NEAR(most / law->limit(), 1, 1e-3);
      EXPECT_GE(law->at(law->peak()), law->at(law->peak() * 1.1));
      EXPECT_GE(law->at(law->peak()), law->at(law->peak() * 0.9));
    }
  }
}

TEST(BatchLaws, PlantedOnesComeBack) {
  Random random(6);
  for (int i = 0; i < 200; ++i) {
    const BatchLaw planted{random.uniform(1e-4, 0.1), random.uniform(1e-6, 1e-3)};
    Points points;
    for (const double batch : {8, 16, 64, 256}) points.emplace_back(batch, planted.at(batch));
    const auto law = fit_batch(points);
    ASSERT_TRUE(law.has_value());
    EXPECT_NEAR(law->fixed_s / planted.fixed_s, 1, 1e-6);
    EXPECT_NEAR(law->each_s / planted.each_s, 1, 1e-6);
    EXPECT_NEAR(law->at(law->half()), 0.5 / planted.each_s, 1e-6 / planted.each_s);
  }
}

TEST(Ceilings, PlantedOnesComeBack) {
  Random random(8);
  for (int i = 0; i < 200; ++i) {
    const double slope = random.uniform(1, 1e3), knee = random.uniform(2.2, 7.8);
    Points points;
    for (const double n : {1, 2, 8, 12, 16})
      points.emplace_back(n, std::min(slope * n, slope * knee));
    const auto found = fit_ceiling(points);
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(found->slope / slope, 1, 1e-9);
    EXPECT_NEAR(found->knee(), knee, 1e-9);
  }
}

}  // namespace
}  // namespace stoker::study
