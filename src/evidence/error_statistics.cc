#include "evidence/error_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace stoker {

double relative_error(double forecast, double measured) { return forecast / measured - 1; }

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void ErrorStatistics::add(double error, const std::string& label, bool within) {
  const double absolute = std::fabs(error);
  if (absolute_.empty() || absolute > worst_) {
    worst_ = absolute;
    worst_label_ = label;
  }
  absolute_.push_back(absolute);
  sum_ += absolute;
  signed_sum_ += error;
  within_ += within ? 1 : 0;
}

double ErrorStatistics::share_of(double sum) const {
  return absolute_.empty() ? 0 : sum / static_cast<double>(absolute_.size());
}

double ErrorStatistics::mean() const { return share_of(sum_); }
double ErrorStatistics::median() const { return median_of(absolute_); }
double ErrorStatistics::bias() const { return share_of(signed_sum_); }
double ErrorStatistics::coverage() const { return share_of(static_cast<double>(within_)); }

}  // namespace stoker
