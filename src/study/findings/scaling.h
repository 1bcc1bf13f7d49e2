#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/findings/selection.h"

namespace stoker::study {

/// How throughput grows with a number of something: X(n) = first n / (1 + a (n-1) + b n (n-1)), the
/// universal scalability law (Gunther 2007); with b = 0 it is Amdahl's law, whose serial share is
/// a.
struct ScalingLaw {
  double first = 0;       ///< throughput of one
  double contention = 0;  ///< a: the share that is done one after the other
  double coherence = 0;   ///< b: what each two cost each other
  double error = 0;       ///< root of the mean square of relative errors at the measured numbers

  [[nodiscard]] double at(double n) const;
  /// The number from which on more makes it slower; infinite without coherence.
  [[nodiscard]] double peak() const;
  /// What it can never exceed.
  [[nodiscard]] double limit() const;
};
/// Needs at least three numbers; nullopt where they do not decide it. Points: number, throughput.
[[nodiscard]] std::optional<ScalingLaw> fit_scaling(
    const std::vector<std::pair<double, double>>& points);

/// Throughput that grows in proportion until something else limits it: X(n) = min(slope n, limit).
struct Ceiling {
  double slope = 0, limit = 0, error = 0;
  /// The number from which on something else limits.
  [[nodiscard]] double knee() const { return limit / slope; }
};
[[nodiscard]] std::optional<Ceiling> fit_ceiling(
    const std::vector<std::pair<double, double>>& points);

/// Time of a step that has a fixed part and one that grows with the batch:
/// X(b) = b / (fixed + each b).
struct BatchLaw {
  double fixed_s = 0, each_s = 0, error = 0;
  [[nodiscard]] double at(double batch) const { return batch / (fixed_s + each_s * batch); }
  /// The batch at which half of the limit is reached.
  [[nodiscard]] double half() const { return fixed_s / each_s; }
};
[[nodiscard]] std::optional<BatchLaw> fit_batch(
    const std::vector<std::pair<double, double>>& points);

/// What one axis of numbers does to throughput, all else equal.
struct AxisScaling {
  std::string axis;
  std::vector<std::pair<std::string, std::string>> others;  ///< the other axes, with their values
  std::vector<std::pair<double, double>> points;
  std::optional<ScalingLaw> law;
  std::optional<Ceiling> ceiling;
  std::optional<BatchLaw> batch;

  /// The law that says most of the points: a knee that explains them better than a law without one
  /// is what limits next.
  enum class Law : std::uint8_t { kBatch, kCeiling, kScaling };
  [[nodiscard]] Law explained_by() const;
  /// Throughput by that law, and how far it is off.
  [[nodiscard]] double at(double n) const;
  [[nodiscard]] double error() const;
};
/// Covers every axis of at least three positive numbers whose name is one of threads, workers,
/// cores, gpus, nodes, batch or holds it, for the best values of the other axes.
[[nodiscard]] std::vector<AxisScaling> scalings(const StudyView& view, const std::string& metric);

}  // namespace stoker::study
