#include "study/findings/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::study {
namespace {

/// 97.5 % points of Student's t for 1 to 30 degrees of freedom.
constexpr std::array<double, 30> kStudent{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                          2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                          2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                          2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.960;

/// Solves by elimination with pivots; nullopt where the columns depend on each other.
std::optional<std::vector<double>> solve(std::vector<std::vector<double>> a,
                                         std::vector<double> b) {
  const std::size_t n = b.size();
  constexpr double kSingular = 1e-12;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (std::abs(a[pivot][column]) < kSingular) return std::nullopt;
    std::swap(a[pivot], a[column]);
    std::swap(b[pivot], b[column]);
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (std::size_t k = column; k < n; ++k) a[row][k] -= factor * a[column][k];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] /= a[i][i];
  return b;
}

}  // namespace

double student_t(std::int64_t degrees) {
  if (degrees < 1) return INFINITY;
  if (degrees <= 30) return kStudent.at(static_cast<std::size_t>(degrees - 1));
  // Between 30 and infinity t is nearly linear in 1 / degrees.
  return kNormal + (kStudent.back() - kNormal) * 30.0 / static_cast<double>(degrees);
}

MeanInterval mean_interval(const std::vector<double>& values) {
  MeanInterval m;
  m.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return m;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) m.mean += value / n;
  if (values.size() < 2) return m;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  const double half = student_t(m.count - 1) * std::sqrt(squares / (n - 1) / n);
  m.low = m.mean - half;
  m.high = m.mean + half;
  return m;
}

std::optional<std::vector<double>> least_squares(const std::vector<std::vector<double>>& rows,
                                                 const std::vector<double>& targets) {
  if (rows.empty() || rows.size() < rows[0].size()) return std::nullopt;
  const std::size_t n = rows[0].size();
  // Columns of like size: else what is singular cannot be told from what is small.
  std::vector<double> scale(n);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < n; ++i) scale[i] = std::max(scale[i], std::abs(row[i]));
  }
  if (std::ranges::find(scale, 0.0) != scale.end()) return std::nullopt;
  std::vector<std::vector<double>> normal(n, std::vector<double>(n));
  std::vector<double> right(n);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < n; ++i) {
      right[i] += rows[r][i] / scale[i] * targets[r];
      for (std::size_t k = 0; k < n; ++k)
        normal[i][k] += rows[r][i] / scale[i] * rows[r][k] / scale[k];
    }
  }
  auto solved = solve(std::move(normal), std::move(right));
  if (!solved) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) (*solved)[i] /= scale[i];
  return solved;
}

}  // namespace stoker::study
