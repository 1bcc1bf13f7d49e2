#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "study/definition/study.h"
#include "study/definition/trials.h"

namespace stoker::cli {

/// What a trial is expected to do.
struct TrialForecast {
  bool fits = true;
  std::string reason;                              ///< why it does not
  Figure samples_per_s, peak_bytes, wall_s, cost;  ///< of the last two 0: not known
  Figure gpu_busy;                                 ///< share of time in which a kernel runs, 0..1
  int gpus = 0;
  double power_limit_w = 0;  ///< of all its GPUs; 0: not known
  /// Figures by names of metrics and resources, with the ends of bands: as a store keeps them.
  std::map<std::string, double> figures;

  /// "forecast 354 samples/s [298-435], 6.5 GiB"
  [[nodiscard]] std::string text() const;
};

/// Forecasts trials of a study; trials whose settings agree are computed once.
class TrialForecaster {
 public:
  explicit TrialForecaster(const study::Study& study) : study_(study) {}
  /// Refused where the settings are none of `stoker predict`, with its sentence.
  [[nodiscard]] Result<TrialForecast> of(const study::TrialValues& trial);

 private:
  /// Words of `stoker predict` for this trial.
  [[nodiscard]] Result<std::vector<std::string>> words(const study::TrialValues& trial) const;
  /// What follows `script` in the command of this trial. Settings that no step depends on have the
  /// values of the first trial there: one capture serves all.
  [[nodiscard]] Result<std::vector<std::string>> script_arguments(const std::string& script,
                                                                  study::TrialValues trial);

  const study::Study& study_;
  std::map<std::string, std::string> first_;  ///< values of such settings, by axis
  std::map<std::vector<std::string>, TrialForecast> known_;
};

/// How many of a study's trials fit.
class ForecastTotal {
 public:
  void add(const TrialForecast& forecast);
  /// "forecast: 5 of 6 trials fit"
  [[nodiscard]] std::string text() const;

 private:
  std::int64_t trials_ = 0, fit_ = 0;
};

}  // namespace stoker::cli
