#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "evidence/input/loader_runs.h"

namespace stoker {

/// What the forecasts of real DataLoaders have to reach; relative errors.
struct InputBars {
  double epoch_mean = 0.04, epoch_worst = 0.10;
  double first_batch_mean = 0.15;
  /// Where the window of batches fills; elsewhere the most that can be is not to be exceeded by
  /// more.
  double shared_memory_worst = 0.01;
  double recommendation = 0.03;  ///< loss of the forecast's best setting against the measured best
  /// Share of the measured epochs that lie within the 90 % band. Less is a failure only where
  /// chance does not explain it.
  double band_coverage = 0.90;
};

/// One measured point beside its forecast from the scenario's calibration.
struct ComparedPoint {
  std::string scenario;
  LoaderPoint point;
  LoaderForecast forecast;
  Band band;  ///< of the epoch, relative to the forecast
  /// Best good repetition; median of the good ones for the first batch and the memory (of two the
  /// lower).
  Nanos epoch, first_batch, interval;
  Bytes shared_memory;
  int good = 0;
  double epoch_error = 0, first_batch_error = 0;  ///< (forecast - measured) / measured
  std::optional<double> shared_memory_error;      ///< absent without workers
  /// The forecast says that the loader's whole window fills, of batches that are all alike: then
  /// its memory is a matter of counting. Elsewhere it is the most of a random process.
  bool window_fills = false;
  bool exceeds_window = false;  ///< more was in use than the whole window, of batches all alike
  bool within_band = false;

  [[nodiscard]] std::string label() const { return scenario + ": " + point.label(); }
  [[nodiscard]] Nanos forecast_epoch() const;
  [[nodiscard]] Nanos forecast_first_batch() const;
};

/// A point that too few repetitions could be kept of.
struct DroppedPoint {
  std::string label, why;
};

/// The forecast's choice among the measured settings that differ in workers alone.
struct RecommendationCheck {
  std::string scenario;
  std::string chosen, best;  ///< labels
  double loss = 0;           ///< measured samples/s of the choice below those of the best
  std::size_t settings = 0;  ///< compared
};

/// Mean, worst and count of absolute relative errors.
struct ErrorSummary {
  std::size_t count = 0;
  double mean = 0, worst = 0, bias = 0;  ///< bias: mean with sign
  std::string worst_label;
};

struct InputValidation {
  std::vector<ComparedPoint> points;
  std::vector<DroppedPoint> dropped;
  std::vector<RecommendationCheck> recommendations;
  ErrorSummary epoch, first_batch;
  ErrorSummary shared_memory,
      shared_memory_elsewhere;  ///< where the window fills; the other points
  std::vector<std::pair<std::string, ErrorSummary>> by_scenario;  ///< epoch
  double coverage = 0;                ///< share of points within their band
  std::vector<std::string> failures;  ///< bars that were missed, in words; empty: all reached
};

/// Forecasts every point from its scenario's own calibration and nothing else that was measured.
/// `profile` stands in for what a probe lacks. An error when there is nothing to compare.
[[nodiscard]] Result<InputValidation> validate_input(const LoaderRuns& runs,
                                                     const LoaderProfile& profile,
                                                     const InputBars& bars = {});

/// The forecast of one point: the loop waits for every step.
[[nodiscard]] LoaderForecast forecast_of(const LoaderScenario& scenario, const LoaderPoint& point,
                                         const SampleCost& cost);

}  // namespace stoker
