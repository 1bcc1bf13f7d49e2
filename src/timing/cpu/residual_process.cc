#include "timing/cpu/residual_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace stoker {
namespace {

constexpr double kJitter = 1e-10;  ///< keeps the factorisation going where rows repeat each other

double square(double x) { return x * x; }

/// Matern 3/2: once differentiable, as times are that pass from one regime to the next.
double likeness(double distance) {
  const double d = std::sqrt(3.0) * distance;
  return (1 + d) * std::exp(-d);
}

std::size_t at_row(std::size_t row) { return row * (row + 1) / 2; }

/// Eight sums side by side: vectors may be used, and the order stays what it is.
double dot(const double* a, const double* b, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) sums[k] += a[i + k] * b[i + k];
  }
  double sum = 0;
  for (const double s : sums) sum += s;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

ResidualProcess::ResidualProcess(std::vector<ProcessRow> rows, const ProcessPrior& prior,
                                 double mean)
    : rows_(std::move(rows)), prior_(prior), mean_(mean) {
  const std::size_t n = rows_.size();
  factor_.assign(at_row(n), 0);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = &factor_[at_row(i)];
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = covariance(rows_[i].point, rows_[j].point);
      if (i == j) sum += square(std::max(rows_[i].noise, prior_.least_noise)) + kJitter;
      const double* const other = &factor_[at_row(j)];
      sum -= dot(row, other, j);
      row[j] = i == j ? std::sqrt(std::max(sum, kJitter)) : sum / other[j];
    }
  }
  for (const ProcessRow& r : rows_) weights_.push_back(r.value - mean_);
  forward_solve(weights_);
  backward_solve(weights_);
}

double ResidualProcess::covariance(const ProcessPoint& a, const ProcessPoint& b) const {
  double value = square(prior_.common) +
                 square(prior_.by_size) * likeness(std::abs(a.size - b.size) / prior_.size_length);
  if (a.family == b.family) {
    double distance = 0;
    for (std::size_t f = 0; f < kProcessFeatures; ++f)
      distance += square(a.features[f] - b.features[f]);
    const double own =
        square(prior_.function) + square(prior_.by_features) * likeness(std::sqrt(distance));
    value += (a.function == b.function ? 1 : prior_.kin) * own;
  }
  return value * std::exp(-std::abs(a.log_threads - b.log_threads) / prior_.thread_length);
}

std::vector<double> ResidualProcess::covariances(const ProcessPoint& point) const {
  std::vector<double> k(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) k[i] = covariance(rows_[i].point, point);
  return k;
}

void ResidualProcess::forward_solve(std::vector<double>& x, std::size_t from) const {
  for (std::size_t i = from; i < x.size(); ++i) {
    const double* const row = &factor_[at_row(i)];
    x[i] = (x[i] - dot(row + from, x.data() + from, i - from)) / row[i];
  }
}

void ResidualProcess::backward_solve(std::vector<double>& x) const {
  for (std::size_t i = x.size(); i-- > 0;) {
    x[i] /= factor_[at_row(i) + i];
    for (std::size_t k = 0; k < i; ++k) x[k] -= factor_[at_row(i) + k] * x[i];
  }
}

ResidualProcess::Value ResidualProcess::at(const ProcessPoint& point) const {
  std::vector<double> k = covariances(point);
  Value value{mean_, covariance(point, point)};
  for (std::size_t i = 0; i < k.size(); ++i) value.mean += k[i] * weights_[i];
  forward_solve(k);
  for (const double x : k) value.variance -= x * x;
  value.variance = std::max(value.variance, 0.0);
  return value;
}

double ResidualProcess::variance_of_sum(std::span<const ProcessPoint> points,
                                        std::span<const double> weights) const {
  double variance = 0;
  std::vector<double> with_rows(rows_.size(), 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double both = weights[i] * weights[j] * covariance(points[i], points[j]);
      variance += i == j ? both : 2 * both;
    }
    for (std::size_t r = 0; r < rows_.size(); ++r)
      with_rows[r] += weights[i] * covariance(rows_[r].point, points[i]);
  }
  forward_solve(with_rows);
  for (const double x : with_rows) variance -= x * x;
  return std::max(variance, 0.0);
}

std::vector<ResidualProcess::Value> ResidualProcess::left_out() const {
  const std::size_t n = rows_.size();
  std::vector<Value> out(n);
  // The diagonal of the inverse is the sum of squares of the columns of the factor's inverse.
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> column(n, 0);
    column[i] = 1;
    forward_solve(column, i);  // zeros stand before
    double diagonal = 0;
    for (const double x : column) diagonal += x * x;
    out[i] = {weights_[i] / diagonal, 1 / diagonal};
  }
  return out;
}

}  // namespace stoker
