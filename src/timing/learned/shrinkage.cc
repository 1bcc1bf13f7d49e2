#include "timing/learned/shrinkage.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kHuber = 1.5;  ///< standard deviations from which a row's weight falls
constexpr int kRounds = 12;     ///< of reweighting; the fit is stable to 1e-6 well before

/// Inverse of a symmetric positive definite matrix by Gauss-Jordan; a few dozen rows at most.
std::vector<double> inverse(std::vector<double> a, std::size_t n) {
  std::vector<double> out(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) out[i * n + i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = a[i * n + i];
    for (std::size_t j = 0; j < n; ++j) a[i * n + j] /= pivot, out[i * n + j] /= pivot;
    for (std::size_t r = 0; r < n; ++r) {
      const double factor = a[r * n + i];
      if (r == i || factor == 0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a[r * n + j] -= factor * a[i * n + j];
        out[r * n + j] -= factor * out[i * n + j];
      }
    }
  }
  return out;
}

/// What one row weighs of each unknown: device, then groups, then parts.
using Weights = std::vector<std::pair<std::size_t, double>>;

class Fit {
 public:
  Fit(const std::vector<LogRatio>& rows, const std::vector<std::size_t>& group_of,
      std::size_t groups, const ShrinkagePriors& priors)
      : rows_(rows),
        group_of_(group_of),
        parts_(group_of.size()),
        groups_(groups),
        priors_(priors),
        n_(1 + groups + parts_),
        mean_(n_, 0.0),
        within_(parts_, priors.within),
        weight_(rows.size(), 1.0) {
    for (const LogRatio& row : rows) shares_.push_back(shares_of(row));
  }

  ShrinkageFit run() {
    for (int round = 0; round < kRounds; ++round) {
      solve();
      reweight();
    }
    return result();
  }

 private:
  [[nodiscard]] std::size_t group(std::size_t g) const { return 1 + g; }
  [[nodiscard]] std::size_t part(std::size_t p) const { return 1 + groups_ + p; }

  static Weights shares_of(const LogRatio& row) {
    Weights shares = row.others;
    double left = 1;
    for (const auto& [part, share] : row.others) left -= share;
    shares.emplace_back(row.part, left);
    return shares;
  }
  [[nodiscard]] Weights weights_of(const Weights& shares) const {
    Weights weights;
    for (const auto& [p, share] : shares) {
      weights.insert(weights.end(), {{0, share}, {group(group_of_[p]), share}, {part(p), share}});
    }
    return weights;
  }
  [[nodiscard]] double variance_of(std::size_t row) const {
    double variance = rows_[row].variance;
    for (const auto& [p, share] : shares_[row]) variance += share * share * within_[p] * within_[p];
    return variance;
  }
  [[nodiscard]] double residual(std::size_t row) const {
    double left = rows_[row].value;
    for (const auto& [i, weight] : weights_of(shares_[row])) left -= weight * mean_[i];
    return left;
  }

  void solve() {
    std::vector<double> precision(n_ * n_, 0.0), right(n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      const double prior = i == 0 ? priors_.device : i <= groups_ ? priors_.group : priors_.part;
      precision[i * n_ + i] = 1 / (prior * prior);
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double w = weight_[r] / variance_of(r);
      const Weights weights = weights_of(shares_[r]);
      for (const auto& [i, a] : weights) {
        right[i] += w * a * rows_[r].value;
        for (const auto& [j, b] : weights) precision[i * n_ + j] += w * a * b;
      }
    }
    covariance_ = inverse(std::move(precision), n_);
    for (std::size_t i = 0; i < n_; ++i) {
      mean_[i] = 0;
      for (std::size_t j = 0; j < n_; ++j) mean_[i] += covariance_[i * n_ + j] * right[j];
    }
  }

  /// Far rows count less, and each part's own scatter is mixed with the guess.
  void reweight() {
    std::vector<double> squares(parts_, 0.0), counts(parts_, 0.0);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double e = residual(r), off = std::abs(e) / std::sqrt(variance_of(r));
      weight_[r] = off > kHuber ? kHuber / off : 1;
      if (!rows_[r].others.empty()) continue;  // a sum does not tell whose scatter it has
      squares[rows_[r].part] += weight_[r] * std::max(0.0, e * e - rows_[r].variance);
      counts[rows_[r].part] += 1;
    }
    for (std::size_t p = 0; p < parts_; ++p) {
      within_[p] = std::sqrt((priors_.freedom * priors_.within * priors_.within + squares[p]) /
                             (priors_.freedom + counts[p]));
    }
  }

  /// Mean and variance of a sum of unknowns.
  [[nodiscard]] PartEstimate sum(std::initializer_list<std::size_t> at) const {
    PartEstimate e;
    for (const std::size_t i : at) {
      e.mean += mean_[i];
      for (const std::size_t j : at) e.variance += covariance_[i * n_ + j];
    }
    e.within = priors_.within;
    return e;
  }

  [[nodiscard]] ShrinkageFit result() const {
    ShrinkageFit fit;
    fit.device = sum({0});
    for (std::size_t g = 0; g < groups_; ++g) fit.groups.push_back(sum({0, group(g)}));
    for (std::size_t p = 0; p < parts_; ++p) {
      fit.parts.push_back(sum({0, group(group_of_[p]), part(p)}));
      fit.parts.back().within = within_[p];
    }
    for (const Weights& shares : shares_) {
      for (const auto& [p, share] : shares) fit.parts[p].rows += 1;
    }
    return fit;
  }

  const std::vector<LogRatio>& rows_;
  const std::vector<std::size_t>& group_of_;
  std::size_t parts_, groups_;
  ShrinkagePriors priors_;
  std::size_t n_;
  std::vector<double> mean_, within_, weight_, covariance_;
  std::vector<Weights> shares_;
};

}  // namespace

ShrinkageFit fit_shrinkage(const std::vector<LogRatio>& rows,
                           const std::vector<std::size_t>& group_of, std::size_t groups,
                           const ShrinkagePriors& priors) {
  return Fit(rows, group_of, groups, priors).run();
}

}  // namespace stoker
