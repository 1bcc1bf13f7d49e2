#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/definition/study.h"
#include "study/trial/trial_result.h"

namespace stoker::study {

/// What a trial reports while it runs, from lines of its output and from stoker.report.
class MetricReader {
 public:
  explicit MetricReader(std::vector<Metric> metrics);
  ~MetricReader();
  MetricReader(MetricReader&&) noexcept;
  MetricReader(const MetricReader&) = delete;
  MetricReader& operator=(const MetricReader&) = delete;
  MetricReader& operator=(MetricReader&&) = delete;

  /// A line of output, `seconds` after the start.
  void output(std::string_view line, double seconds);
  /// A line of the reports' file; `started` is when the trial did, by the clock of its times.
  void report(std::string_view line, double started);

  /// What each metric came to, by its rule; those that were not finite or never came are absent.
  [[nodiscard]] std::map<std::string, double> values() const;
  [[nodiscard]] std::vector<MetricPoint> points() const;
  /// Samples a second without the warm-up: of the reports that say `samples`.
  [[nodiscard]] std::optional<double> samples_per_second() const;
  /// From when to when these samples were processed, in seconds since the start.
  [[nodiscard]] std::optional<std::pair<double, double>> steady_window() const;

  struct Problem {
    std::string cause;   ///< metric_absent, metric_not_a_number, metric_not_finite
    std::string reason;  ///< a sentence
  };
  /// The first thing that is wrong with a metric that the study needs.
  [[nodiscard]] std::optional<Problem> problem() const;

 private:
  struct Series;
  struct Pattern;
  Series& series(const std::string& name);
  void add(Series& series, std::optional<double> step, double seconds, std::string_view text);

  std::vector<Metric> metrics_;
  std::map<std::string, std::unique_ptr<Series>> series_;
  std::vector<Pattern> patterns_;
  std::vector<std::pair<double, double>> samples_;  ///< seconds, samples since the report before
  int bad_reports_ = 0;
};

/// The rate of reports (seconds, samples since the one before), from the first report on and
/// without those at the beginning that are slower than half of the median: they warm up.
[[nodiscard]] std::optional<double> steady_rate(
    const std::vector<std::pair<double, double>>& samples);
/// The first of these reports that counts; nullopt: there are too few.
[[nodiscard]] std::optional<std::size_t> steady_from(
    const std::vector<std::pair<double, double>>& samples);

}  // namespace stoker::study
