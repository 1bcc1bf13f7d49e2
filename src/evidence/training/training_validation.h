#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "evidence/training/training_runs.h"
#include "forecast/forecast.h"

namespace stoker {

/// Time of a forecast step by phase and operator class, in milliseconds; what no operator explains
/// is the host's.
struct ClassTimes {
  std::array<std::array<double, kKernelClasses>, kStepPhases> by_phase{};
  std::array<double, kStepPhases> host{};
};

/// A forecast of a measured run, as the validation needs it.
struct RunForecast {
  Forecast forecast;
  ClassTimes classes;
};

/// One figure: forecast beside fact.
struct ComparedFigure {
  std::string
      name;  ///< "step", "forward", "backward", "optimizer", "throughput", "peak memory" ...
  std::string unit;  ///< "ms", "samples/s", "bytes"
  Figure forecast;
  double fact = 0;
  bool judged = false;  ///< a figure that must lie in its band; others are shown

  /// Relative to what was measured, above zero: forecast too high.
  [[nodiscard]] double error() const { return forecast.value / fact - 1; }
  [[nodiscard]] bool within() const { return fact >= forecast.low && fact <= forecast.high; }
};

struct ComparedRun {
  MeasuredRun run;
  std::optional<TrainingFact> fact;
  std::optional<RunForecast> forecast{};
  std::string not_forecast{};  ///< why there is no forecast; else empty
  std::vector<ComparedFigure> figures{};

  [[nodiscard]] const ComparedFigure* figure(std::string_view name) const;
  /// Forecast and fact of a run that came to its end undisturbed.
  [[nodiscard]] bool counts() const {
    return forecast && fact && fact->good > 0 && run.status == RunStatus::kOk;
  }
};

/// Relative errors of one figure over the runs that count.
struct FigureSummary {
  std::string name;
  std::size_t count = 0;
  double median = 0, worst = 0, bias = 0;  ///< absolute values but for the bias
  double coverage = 0;                     ///< share within the band
  std::string worst_label{};
};

/// Whether the forecast puts the batches of one model and setting in the measured order.
struct BatchRanking {
  std::string label;                 ///< "resnet18, 2 threads, fp32"
  std::size_t pairs = 0, right = 0;  ///< of batches whose throughput differs beyond the noise
  std::int64_t measured_best = 0, forecast_best = 0;
  double lost = 0;  ///< of the measured best's throughput, by taking the forecast's best
};

/// What a class of operators adds to the errors, as far as the runs tell.
struct ClassError {
  std::string name;      ///< "convolution", "host"
  double share = 0;      ///< of the forecast time of all runs
  double factor = 1;     ///< measured over forecast
  double deviation = 0;  ///< standard deviation of the factor
  double carried = 0;    ///< of the measured time: (factor - 1) x its forecast time
};

struct TrainingValidation {
  std::vector<ComparedRun> runs;
  std::vector<FigureSummary> summaries;
  std::vector<BatchRanking> rankings;
  std::vector<ClassError> classes;    ///< those that carry most first
  std::vector<std::string> failures;  ///< bands that did not hold, in words; empty: all did
  std::size_t judged = 0;             ///< figures that had to lie in their bands
  std::size_t not_judged = 0;         ///< runs with too few undisturbed repetitions
};

/// Forecasts a measured run on the machine that it ran on.
using Forecaster = std::function<Result<RunForecast>(const MeasuredRun&)>;

/// Sets each run beside its forecast. A run that cannot be forecast is kept with the reason; an
/// error only when none can.
[[nodiscard]] Result<TrainingValidation> validate_training(const std::vector<MeasuredRun>& runs,
                                                           const Forecaster& forecaster);

/// Sets runs beside forecasts that are at hand.
[[nodiscard]] TrainingValidation judge(std::vector<ComparedRun> runs);

/// How long each class of operator of a lowered program takes in each phase.
[[nodiscard]] ClassTimes class_times(const Program& program, const StepTime& time);

}  // namespace stoker
