#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Interpolation between measurements with an honest doubt. Internal to src/timing.
namespace stoker {

inline constexpr std::size_t kProcessFeatures = 10;

/// Where a value of the process is asked for or known: which function, at which sizes.
struct ProcessPoint {
  std::uint32_t family = 0;    ///< kindred functions ("add", "add_") share it
  std::uint32_t function = 0;  ///< within it
  /// Logarithms of sizes, each over the length within which values resemble each other.
  std::array<double, kProcessFeatures> features{};
  double size = 0;         ///< logarithm (base 2) of the amount of work: what all functions share
  double log_threads = 0;  ///< base 2
};

struct ProcessRow {
  ProcessPoint point;
  double value = 0;
  double noise = 0;  ///< standard deviation of the value
};

/// Standard deviations of the parts that a value is the sum of, and how fast they change.
struct ProcessPrior {
  double common = 0.2;        ///< what all points share
  double by_size = 0.15;      ///< what points of about one size share
  double function = 0.3;      ///< what points of one function share
  double by_features = 0.25;  ///< what points of one function and about the same sizes share
  double size_length = 3;     ///< in doublings
  double kin = 0.85;          ///< correlation of two functions of one family
  double thread_length = 8;   ///< doublings of the threads after which e^-1 of the likeness is left
  double least_noise = 0.02;  ///< rows never count as more exact
};

/// A Gaussian process with a constant mean, conditioned on rows in closed form: mean and covariance
/// at any points. Without rows it answers the prior. Pure and deterministic; O(n^3) once, O(n^2) a
/// point.
class ResidualProcess {
 public:
  struct Value {
    double mean = 0;
    double variance = 0;
  };

  ResidualProcess(std::vector<ProcessRow> rows, const ProcessPrior& prior, double mean = 0);

  [[nodiscard]] Value at(const ProcessPoint& point) const;
  /// Variance of the sum of weight times value: points close to each other err together.
  [[nodiscard]] double variance_of_sum(std::span<const ProcessPoint> points,
                                       std::span<const double> weights) const;
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] double value(std::size_t row) const { return rows_[row].value; }
  [[nodiscard]] double mean() const { return mean_; }
  /// Prior covariance of two points.
  [[nodiscard]] double covariance(const ProcessPoint& a, const ProcessPoint& b) const;
  /// What each row would have been told without itself, in order: value - prediction, and the
  /// prediction's variance (Rasmussen, Williams: Gaussian Processes for Machine Learning, 5.4.2).
  [[nodiscard]] std::vector<Value> left_out() const;

 private:
  /// `x` is zero before `from`.
  void forward_solve(std::vector<double>& x, std::size_t from = 0) const;
  void backward_solve(std::vector<double>& x) const;
  [[nodiscard]] std::vector<double> covariances(const ProcessPoint& point) const;

  std::vector<ProcessRow> rows_;
  ProcessPrior prior_;
  double mean_ = 0;
  std::vector<double> factor_;   ///< lower triangle of the Cholesky factor, row by row
  std::vector<double> weights_;  ///< (K + noise)^-1 (values - mean)
};

}  // namespace stoker
