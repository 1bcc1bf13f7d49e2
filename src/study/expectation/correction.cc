#include "study/expectation/correction.h"

#include <algorithm>
#include <cmath>

#include "study/definition/values.h"

namespace stoker::study {
namespace {

/// Half of a 90 % band in standard deviations.
constexpr double kHalfBand = 1.645;
/// How much of a forecast's error is common to all trials, belongs to values of axes, and to the
/// setting alone. Judgement, as is the rest here: the bands that come of it are measured in
/// docs/guide/sweeping.md.
constexpr double kCommon = 0.4, kOfAxes = 0.4, kOwn = 0.2;
/// Two runs of one setting differ so much, relative.
constexpr double kNoise = 0.05;
/// Without a forecast, settings may differ by a factor of e^1 either way.
constexpr double kUnknown = 1;
/// The level of a figure that nothing forecasts may be anything (e^5 either way).
constexpr double kAnyLevel = 5;
/// A script does more than its model, and no machine is quite as its data sheet: once something is
/// measured, all may be slower or faster by e^0.5 in common beside what bands say.
constexpr double kPace = 0.5;
/// A band that is narrower than this is not believed.
constexpr double kLeastDeviation = 0.02;
/// What was seen counts as much as so many trials that were as far off as their bands say.
constexpr double kPriorTrials = 4;
/// The last so many trials are learnt from: solving for them takes a millisecond.
constexpr std::size_t kMostSeen = 96;

double log_mean(const Correction::Prior& p) {
  return p.forecast ? std::log(p.forecast->value) : std::log(p.in_proportion_to);
}

double deviation_of(const Correction::Prior& p) {
  if (!p.forecast) return kUnknown;
  const Banded& f = *p.forecast;
  if (f.low <= 0 || f.high <= f.low) return kLeastDeviation;
  return std::max(std::log(f.high / f.low) / (2 * kHalfBand), kLeastDeviation);
}

/// 1 for the same value; numbers are alike that are near in proportion.
double likeness(const std::string& a, const std::string& b) {
  if (a == b) return 1;
  const auto x = as_number(a), y = as_number(b);
  if (!x || !y) return 0;
  const double distance =
      *x > 0 && *y > 0 ? std::log(*x / *y) : *x - *y;  // 0 workers are not a little fewer than 1
  return std::exp(-distance * distance / 2);
}

double covariance(const Correction::Prior& a, const Correction::Prior& b, double pace) {
  double alike = 0;
  bool same = true;
  const std::size_t axes = std::min(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < axes; ++i) {
    alike += likeness(a.values[i], b.values[i]) / static_cast<double>(axes);
    same = same && a.values[i] == b.values[i];
  }
  const double shared = kCommon + kOfAxes * alike + (same ? kOwn : 0.0);
  const double level = a.forecast && b.forecast ? pace * pace : kAnyLevel * kAnyLevel;
  return deviation_of(a) * deviation_of(b) * shared + level;
}

/// L^-1 b for the lower triangle L of n rows.
std::vector<double> forward(const std::vector<double>& factor, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= factor[i * n + k] * b[k];
    b[i] /= factor[i * n + i];
  }
  return b;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

}  // namespace

void Correction::learn(const Prior& prior, double measured) {
  if (!(measured > 0) || !std::isfinite(measured)) return;
  seen_.push_back({prior, std::log(measured)});
  if (seen_.size() > kMostSeen) seen_.erase(seen_.begin());
  fitted_ = 0;
}

void Correction::fit() const {
  if (fitted_ == seen_.size()) return;
  const std::size_t n = seen_.size();
  factor_.assign(n * n, 0);
  std::vector<double> residuals(n);
  for (std::size_t i = 0; i < n; ++i) {
    residuals[i] = seen_[i].log_value - log_mean(seen_[i].prior);
    for (std::size_t j = 0; j <= i; ++j) {
      double sum =
          covariance(seen_[i].prior, seen_[j].prior, kPace) + (i == j ? kNoise * kNoise : 0.0);
      for (std::size_t k = 0; k < j; ++k) sum -= factor_[i * n + k] * factor_[j * n + k];
      factor_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-9)) : sum / factor_[j * n + j];
    }
  }
  weights_ = forward(factor_, std::move(residuals));
  scale_ =
      std::sqrt((kPriorTrials + dot(weights_, weights_)) / (kPriorTrials + static_cast<double>(n)));
  fitted_ = n;
}

Correction::Normal Correction::normal_of(const Prior& prior) const {
  fit();
  Normal normal{log_mean(prior)};
  std::vector<double> shared;
  for (const Seen& one : seen_) shared.push_back(covariance(prior, one.prior, kPace));
  normal.solved = forward(factor_, std::move(shared));
  normal.mean += dot(normal.solved, weights_);
  const double variance =
      covariance(prior, prior, pace()) - dot(normal.solved, normal.solved) + kNoise * kNoise;
  normal.deviation = scale_ * std::sqrt(std::max(variance, kNoise * kNoise));
  return normal;
}

double Correction::pace() const { return seen_.empty() ? 0 : kPace; }

/// Half of a 90 % band of a t distribution, by the first term of its expansion.
double Correction::band() const {
  if (seen_.empty()) return kHalfBand;
  return kHalfBand + 1.53 / (kPriorTrials + static_cast<double>(seen_.size()));
}

std::optional<Banded> Correction::expect(const Prior& prior) const {
  if (prior.forecast && seen_.empty()) return prior.forecast;
  if (!prior.forecast && seen_.size() < 2) return std::nullopt;
  const Normal normal = normal_of(prior);
  const double half = band() * normal.deviation;
  return Banded{std::exp(normal.mean), std::exp(normal.mean - half), std::exp(normal.mean + half)};
}

std::optional<Banded> Correction::sum(const std::vector<Prior>& priors) const {
  constexpr std::size_t kMostPairs = 300;
  double total = 0, variance = 0;
  std::vector<Normal> normals;
  std::vector<double> values;
  for (const Prior& prior : priors) {
    const auto one = expect(prior);
    if (!one) return std::nullopt;
    total += one->value;
    values.push_back(one->value);
  }
  if (priors.empty() || total <= 0) return Banded{};
  // Where there are very many, a part that is evenly spread tells how their errors go together.
  const std::size_t stride = priors.size() / kMostPairs + 1;
  double part = 0;
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < priors.size(); i += stride) {
    chosen.push_back(i);
    normals.push_back(normal_of(priors[i]));
    part += values[i];
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      double shared = covariance(priors[chosen[i]], priors[chosen[j]], pace()) -
                      dot(normals[i].solved, normals[j].solved);
      if (i == j) shared += kNoise * kNoise;
      variance += values[chosen[i]] * values[chosen[j]] / part / part * shared;
    }
  }
  const double half = band() * scale_ * std::sqrt(std::max(variance, 0.0));
  return Banded{total, total * std::exp(-half), total * std::exp(half)};
}

double Correction::below(const Prior& prior, double least) const {
  if (!(least > 0) || !expect(prior)) return 0;
  const Normal normal = normal_of(prior);
  // As many more deviations as the band of few trials is wider than that of many.
  return normal_cdf((std::log(least) - normal.mean) / (normal.deviation * band() / kHalfBand));
}

}  // namespace stoker::study
