#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tune/curve/energy.h"

namespace stoker::tune {

/// What is known of one batch, forecast or measured.
struct BatchFigure {
  std::string value;  ///< as it stands in the command
  double batch = 0;
  std::optional<double> samples_per_s{};
  std::optional<double> utilisation{};  ///< share of time in which the GPU works, 0..1
  std::optional<Power> power{};
  bool fits = true;
  std::string why_not{};
};

/// The figure by which a batch is chosen.
enum class BatchBy : std::uint8_t { kThroughput, kUtilisation, kEnergy };

struct BatchRule {
  BatchBy by = BatchBy::kThroughput;
  double threshold = 0.9;    ///< part of the best figure that is enough
  double energy_weight = 1;  ///< of energy against time; of kEnergy
};

struct BatchChoice {
  std::size_t index = 0;
  std::string reason;
};

/// The smallest batch that reaches the rule's threshold of the best figure of those that fit: a
/// larger one takes more memory and fewer updates an epoch for what little is left. By energy the
/// figure is samples a joule of cost. Nothing where none fits or none has the figure. `figures` are
/// in the order of their batches.
[[nodiscard]] std::optional<BatchChoice> choose_batch(const std::vector<BatchFigure>& figures,
                                                      const BatchRule& rule);

/// Seconds of a step as `fixed + each * batch`, from figures of throughput by least squares on
/// relative errors; nothing from fewer than three batches or without a positive slope.
struct StepFit {
  double fixed_s = 0, each_s = 0;
  double error = 0;  ///< largest relative error of a throughput

  [[nodiscard]] double samples_per_s(double batch) const {
    return batch / (fixed_s + each_s * batch);
  }
};
[[nodiscard]] std::optional<StepFit> fit_steps(const std::vector<BatchFigure>& figures);

/// Why batches above those that were measured need not be: by the fit of a step's time the largest
/// of `rest` cannot make the choice another. Nothing: measure on.
[[nodiscard]] std::optional<std::string> rest_is_flat(const std::vector<BatchFigure>& measured,
                                                      const std::vector<double>& rest,
                                                      double threshold);

}  // namespace stoker::tune
