#pragma once

#include <string>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/common/measure.h"
#include "device/machine.h"
#include "program/job.h"
#include "step/step.h"

namespace stoker::accuracy {

inline constexpr double kMebibyte = 1 << 20;

/// The constant, in the unit of the pairs, that makes the mean absolute relative error least when
/// it is added to every prediction: a weighted median of truth - prediction. No pairs: 0.
[[nodiscard]] double fitted_offset(const std::vector<Pair>& pairs);

/// The pairs with `fitted_offset` of the other half of the families in place of `offset`, which is
/// in their predictions.
[[nodiscard]] std::vector<Pair> with_offset_of_others(std::vector<Pair> pairs, double offset);

/// One measure of device peaks in MiB: what nvidia-smi would show of each row's job.
class DevicePeaks {
 public:
  DevicePeaks(Bench& bench, std::string name, std::string what);

  void refuse(std::string row, std::string reason);

  /// Forecasts one row. False, and a refusal, when the job cannot be lowered. The pairs say nothing
  /// about the bands that ship: constants were set from these rows, or their settings are guessed.
  bool add(const std::string& group, const std::string& label, const Step& step, const Job& job,
           const Machine& machine, double truth_mib);

  [[nodiscard]] const std::vector<Pair>& pairs() const { return measure_.pairs; }

  /// What lies outside the allocator in the forecast of each pair; MiB.
  [[nodiscard]] const std::vector<double>& outside() const { return outside_; }

  /// Another method's figures in MiB, one for each pair; NaN: none. The best by median error is
  /// shown, the others as shares.
  void add_rival(const std::string& name, const std::vector<double>& figures);

  /// Scores; with the context that ships, and with one fitted on the other half of the families.
  [[nodiscard]] Measure finish() &&;

  Measure& measure() { return measure_; }

 private:
  Bench& bench_;
  Measure measure_;
  std::vector<double> outside_;
};

}  // namespace stoker::accuracy
