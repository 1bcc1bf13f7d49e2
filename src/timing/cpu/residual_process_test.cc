#include "timing/cpu/residual_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

namespace stoker {
namespace {

using Matrix = std::vector<std::vector<double>>;

ProcessPoint point(std::uint32_t function, double x, double size = 0, double log_threads = 0) {
  ProcessPoint p;
  p.family = function / 2;
  p.function = function;
  p.features[0] = x;
  p.size = size;
  p.log_threads = log_threads;
  return p;
}

std::vector<ProcessRow> some_rows(int n) {
  std::mt19937 random(7);
  std::vector<ProcessRow> rows;
  for (int i = 0; i < n; ++i) {
    const auto real = [&] { return static_cast<double>(random() % 1000) / 250; };
    const auto function = static_cast<std::uint32_t>(random() % 4);
    rows.push_back({point(function, real(), real() * 3, static_cast<double>(random() % 2)),
                    real() / 4 - 0.5, 0.02 + real() / 50});
  }
  return rows;
}

/// Gauss-Jordan with pivoting: nothing in common with a Cholesky factor.
Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  for (std::size_t i = 0; i < n; ++i) {
    a[i].resize(2 * n, 0);
    a[i][n + i] = 1;
  }
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c; r < n; ++r) {
      if (std::abs(a[r][c]) > std::abs(a[pivot][c])) pivot = r;
    }
    std::swap(a[c], a[pivot]);
    const double by = a[c][c];
    for (double& x : a[c]) x /= by;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double times = a[r][c];
      for (std::size_t k = 0; k < 2 * n; ++k) a[r][k] -= times * a[c][k];
    }
  }
  for (auto& row : a) row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
  return a;
}

/// The textbook's formulas, with the whole inverse.
class Reference {
 public:
  Reference(std::vector<ProcessRow> rows, double mean) : rows_(std::move(rows)), mean_(mean) {
    Matrix k(rows_.size(), std::vector<double>(rows_.size()));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < rows_.size(); ++j)
        k[i][j] = prior_.covariance(rows_[i].point, rows_[j].point);
      k[i][i] += std::pow(std::max(rows_[i].noise, ProcessPrior().least_noise), 2);
    }
    inverse_ = inverse(std::move(k));
  }

  double mean(const ProcessPoint& p) const {
    double sum = mean_;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        sum += prior_.covariance(p, rows_[i].point) * inverse_[i][j] * (rows_[j].value - mean_);
      }
    }
    return sum;
  }
  double covariance(const ProcessPoint& a, const ProcessPoint& b) const {
    double sum = prior_.covariance(a, b);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        sum -= prior_.covariance(a, rows_[i].point) * inverse_[i][j] *
               prior_.covariance(b, rows_[j].point);
      }
    }
    return sum;
  }

 private:
  ResidualProcess prior_{{}, {}};
  std::vector<ProcessRow> rows_;
  double mean_;
  Matrix inverse_;
};

TEST(ResidualProcess, AgreesWithTheTextbook) {
  const auto rows = some_rows(30);
  const ResidualProcess process(rows, {}, 0.1);
  const Reference reference(rows, 0.1);
  std::vector<ProcessPoint> points;
  std::vector<double> weights;
  for (int i = 0; i < 12; ++i) {
    points.push_back(point(static_cast<std::uint32_t>(i % 5), 0.4 * i, i, i % 3));
    weights.push_back(1 + i % 4);
    const auto value = process.at(points.back());
    EXPECT_NEAR(value.mean, reference.mean(points.back()), 1e-6);
    EXPECT_NEAR(value.variance, reference.covariance(points.back(), points.back()), 1e-6);
  }
  double variance = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j)
      variance += weights[i] * weights[j] * reference.covariance(points[i], points[j]);
  }
  EXPECT_NEAR(process.variance_of_sum(points, weights), variance, 1e-5);
}

TEST(ResidualProcess, WithoutRowsItIsThePrior) {
  const ResidualProcess process({}, {}, 0.2);
  const ProcessPrior prior;
  const auto value = process.at(point(1, 2));
  EXPECT_DOUBLE_EQ(value.mean, 0.2);
  EXPECT_NEAR(value.variance,
              prior.common * prior.common + prior.by_size * prior.by_size +
                  prior.function * prior.function + prior.by_features * prior.by_features,
              1e-12);
}

TEST(ResidualProcess, FallsBackFromRowToFunctionToClass) {
  std::vector<ProcessRow> rows;
  for (int i = 0; i < 4; ++i) rows.push_back({point(0, i * 0.2), 0.5, 0.02});
  for (int i = 0; i < 4; ++i) rows.push_back({point(6, i * 0.2), -0.1, 0.02});
  const ResidualProcess process(rows, {});
  const auto here = process.at(point(0, 0.3));
  const auto far = process.at(point(0, 50));
  const auto other = process.at(point(9, 0.3));
  EXPECT_NEAR(here.mean, 0.5, 0.03);
  EXPECT_LT(far.mean, here.mean);
  EXPECT_GT(far.mean, other.mean);
  EXPECT_GT(other.mean, -0.1);
  EXPECT_LT(other.mean, 0.5);
  EXPECT_LT(here.variance, far.variance);
  EXPECT_LT(far.variance, other.variance);
}

TEST(ResidualProcess, DoubtGrowsWithTheDistance) {
  const ResidualProcess process({{point(0, 0), 0.4, 0.02}}, {});
  double before = 0;
  for (double x = 0; x < 6; x += 0.25) {
    const double now = process.at(point(0, x)).variance;
    EXPECT_GE(now, before);
    before = now;
  }
}

TEST(ResidualProcess, OtherThreadsAreHeardButLess) {
  const ResidualProcess process({{point(0, 0, 0, 0), 0.5, 0.02}}, {});
  const auto same = process.at(point(0, 0, 0, 0));
  const auto two = process.at(point(0, 0, 0, 1));
  const auto many = process.at(point(0, 0, 0, 5));
  EXPECT_GT(same.mean, two.mean);
  EXPECT_GT(two.mean, many.mean);
  EXPECT_GT(many.mean, 0);
  EXPECT_LT(two.variance, many.variance);
}

TEST(ResidualProcess, LeftOutIsWhatTheOthersSay) {
  const auto rows = some_rows(15);
  const auto left_out = ResidualProcess(rows, {}).left_out();
  ASSERT_EQ(left_out.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto others = rows;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto told = ResidualProcess(others, {}).at(rows[i].point);
    EXPECT_NEAR(left_out[i].mean, rows[i].value - told.mean, 1e-6) << i;
    EXPECT_NEAR(left_out[i].variance, told.variance + std::pow(std::max(rows[i].noise, 0.02), 2),
                1e-6)
        << i;
  }
}

TEST(ResidualProcess, RepeatedRowsDoNoHarm) {
  const std::vector<ProcessRow> rows(20, {point(0, 1), 0.3, 0});
  const auto value = ResidualProcess(rows, {}).at(point(0, 1));
  EXPECT_NEAR(value.mean, 0.3, 0.01);
  EXPECT_TRUE(std::isfinite(value.variance));
}

}  // namespace
}  // namespace stoker
