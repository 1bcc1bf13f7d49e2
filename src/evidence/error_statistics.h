#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace stoker {

/// (forecast - measured) / measured: above zero the forecast was too high.
[[nodiscard]] double relative_error(double forecast, double measured);

/// The middle value; of an even number the mean of the two in the middle. 0 of none.
[[nodiscard]] double median_of(std::vector<double> values);

/// Relative errors of one figure over the measurements that it was compared with: what the
/// validation of training steps and that of input pipelines say of a forecast.
class ErrorStatistics {
 public:
  /// `label` names the measurement; `within`: it lies in the forecast's band.
  void add(double error, const std::string& label, bool within = true);

  [[nodiscard]] std::size_t count() const { return absolute_.size(); }
  [[nodiscard]] double mean() const;    ///< of the absolute errors
  [[nodiscard]] double median() const;  ///< of the absolute errors
  [[nodiscard]] double bias() const;    ///< mean with sign
  [[nodiscard]] double worst() const { return worst_; }
  [[nodiscard]] const std::string& worst_label() const { return worst_label_; }
  /// Share of the measurements within the band.
  [[nodiscard]] double coverage() const;

 private:
  [[nodiscard]] double share_of(double sum) const;

  std::vector<double> absolute_;
  double sum_ = 0, signed_sum_ = 0, worst_ = 0;
  std::size_t within_ = 0;
  std::string worst_label_;
};

}  // namespace stoker
