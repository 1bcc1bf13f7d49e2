#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stoker::study {

/// A value with the ends of its 90 % band.
struct Banded {
  double value = 0, low = 0, high = 0;
};

/// What trials that ended teach of those that wait, for one positive figure such as the time of a
/// trial.
///
/// Errors of forecasts are taken as normal on a logarithmic scale, as wide as their bands, and as
/// alike as settings are: a part is common to all trials (the pace of this machine), a part belongs
/// to the values of axes (this loader, this precision), a part to each setting alone. What was
/// measured then moves and narrows the forecasts of the others (regression with that covariance,
/// Rasmussen and Williams 2006, chapter 2). Where measurements lie farther off than bands allow,
/// all bands widen by as much. Without a forecast a figure is known from measurements alone.
class Correction {
 public:
  /// What is forecast of a trial, or a number to which the figure should be in proportion.
  struct Prior {
    std::vector<std::string> values;   ///< of the axes
    std::optional<Banded> forecast{};  ///< of the figure itself
    double in_proportion_to = 1;       ///< where nothing forecasts the figure itself
  };

  void learn(const Prior& prior, double measured);
  [[nodiscard]] std::size_t learnt() const { return seen_.size(); }

  /// nullopt: neither forecast nor measured often enough (two trials).
  [[nodiscard]] std::optional<Banded> expect(const Prior& prior) const;
  /// The sum over trials, with the band that errors in common give it; nullopt where one is not
  /// known.
  [[nodiscard]] std::optional<Banded> sum(const std::vector<Prior>& priors) const;
  /// How sure it is that the figure of this trial is below `least`: 0 to 1.
  [[nodiscard]] double below(const Prior& prior, double least) const;

 private:
  struct Seen {
    Prior prior;
    double log_value;
  };
  /// Mean and deviation of the logarithm, and what it shares with what was seen.
  struct Normal {
    double mean = 0, deviation = 0;
    std::vector<double> solved{};  ///< L^-1 k
  };
  void fit() const;
  [[nodiscard]] Normal normal_of(const Prior& prior) const;
  [[nodiscard]] double band() const;
  [[nodiscard]] double pace() const;

  std::vector<Seen> seen_;
  mutable std::vector<double> factor_, weights_;  ///< Cholesky factor, K^-1 of the residuals
  mutable double scale_ = 1;                      ///< of all deviations
  mutable std::size_t fitted_ = 0;
};

}  // namespace stoker::study
