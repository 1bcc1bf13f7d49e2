#include "accuracy/time/row_offset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace stoker::accuracy {
namespace {

/// In microseconds, as scripts/fit_timing/operator_rows.py has them.
constexpr std::array<std::pair<std::string_view, double>, 4> kSpans{
    {{"A100-PCIe-80GB", 300}, {"V100-PCIe-32GB", 275}, {"P100-PCIe-16GB", 790}, {"P4", 740}}};
/// How far off a kernel's forecast is, and that of the shortest in microseconds: what weighs the
/// GPUs that tell a share.
constexpr double kKernelDoubt = 0.1, kLeastDoubt = 15;
/// One over the variance of an even distribution over shares, and its mean.
constexpr double kEvenPrecision = 12, kEvenMean = 0.5;

/// Sums of a least-squares estimate of a share.
struct Sums {
  double above = 0, below = 0;
};

Sums terms_of(const OffsetForecast& f) {
  const double doubt = std::hypot(kKernelDoubt * f.issued, kLeastDoubt);
  const double weight = f.span / (doubt * doubt);
  return {weight * (f.measured - f.issued), weight * f.span};
}

}  // namespace

double offset_span(std::string_view gpu, bool gpu_seen) {
  double logarithms = 0;
  int others = 0;
  for (const auto& [name, span] : kSpans) {
    if (name == gpu && gpu_seen) return span;
    if (name == gpu) continue;
    logarithms += std::log(span);
    ++others;
  }
  return std::exp(logarithms / others);
}

double OffsetForecast::unknowing() const {
  return std::max(floor, std::sqrt(issued * (issued + span)));
}

std::vector<double> told_by_others(const std::vector<OffsetForecast>& forecasts) {
  std::map<std::uint64_t, Sums> shapes;
  for (const OffsetForecast& f : forecasts) {
    const Sums terms = terms_of(f);
    shapes[f.shape].above += terms.above, shapes[f.shape].below += terms.below;
  }
  std::vector<double> times;
  for (const OffsetForecast& f : forecasts) {
    const Sums all = shapes[f.shape], own = terms_of(f);
    const double share = (all.above - own.above + kEvenMean * kEvenPrecision) /
                         (all.below - own.below + kEvenPrecision);
    times.push_back(std::max(f.floor, f.issued + std::clamp(share, 0.0, 1.0) * f.span));
  }
  return times;
}

}  // namespace stoker::accuracy
