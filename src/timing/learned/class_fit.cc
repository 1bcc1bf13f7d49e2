#include "timing/learned/class_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "timing/learned/shrinkage.h"

namespace stoker {
namespace {

/// A kernel that outlasts its launch shows this share of an empty one's time besides its own
/// (docs/models/time.md: single operators on an idle GPU).
constexpr double kGapShare = 0.55;
/// Timers and launches jitter by this share of that.
constexpr double kGapJitter = 0.2;
/// A row that is mostly launch tells of the floor alone.
constexpr double kShortestBeyondGap = 0.5;
constexpr double kLeastNoise = 0.02;  ///< no timing is better; also guards against zero spreads
constexpr double kNormal90 = 1.645;   ///< half-width of 90 % in standard deviations
/// Operators that were timed one by one do not tell what a step adds to them: gaps, clocks under
/// load. 90 % half-width; summed measured operators give measured steps to 4.0 % mean, 2.9 %
/// median.
constexpr double kStepSpread = 0.08;
/// A class's time in a step is the sum over so many different shapes, each with its own error.
constexpr double kShapesInStep = 3;
/// How far scales may go; beyond it the rows are of another GPU than they say.
constexpr double kLargestScale = 4;
constexpr std::size_t kTensorRows = 4;  ///< from which they narrow the tensor cores' own spread

CostLimit limit_of(CostClass c) { return row_of(c).limit; }

class ClassFit {
 public:
  ClassFit(const std::vector<ClassRow>& rows, const Coefficients& before) : before_(before) {
    std::vector<LogRatio> ratios;
    for (const ClassRow& row : rows) {
      LogRatio ratio{part_of(row.cost_class), row.log_ratio, row.variance};
      for (const auto& [c, share] : row.others) ratio.others.emplace_back(part_of(c), share);
      ratios.push_back(std::move(ratio));
    }
    std::vector<std::size_t> group_of;
    for (const CostClass c : parts_) group_of.push_back(static_cast<std::size_t>(limit_of(c)));
    fit_ = fit_shrinkage(ratios, group_of, kCostLimits, {});
  }

  Result<CoefficientPatch> patch() {
    std::set<CostLimit> seen;
    for (const CostClass c : parts_) seen.insert(limit_of(c));
    for (std::size_t i = 0; i < kCostClasses; ++i) {
      const auto c = static_cast<CostClass>(i);
      if (c == CostClass::kHostToDevice || c == CostClass::kCollective) continue;
      const auto at = std::ranges::find(parts_, c);
      const bool measured = at != parts_.end();
      const auto limit = static_cast<std::size_t>(limit_of(c));
      const PartEstimate& e = measured ? fit_.parts[static_cast<std::size_t>(at - parts_.begin())]
                              : seen.contains(limit_of(c)) ? fit_.groups[limit]
                                                           : fit_.device;
      const double scale = std::exp(e.mean);
      if (measured && (scale > kLargestScale || scale < 1 / kLargestScale))
        return refused(c, scale);
      set(std::string(name_of(c)) + ".scale", before_.of(c).scale * scale);
      set(std::string(name_of(c)) + ".spread", spread_of(c, e, measured));
    }
    set("spread.common", std::min(before_.common_spread, kStepSpread));
    if (tensor_rows() >= kTensorRows)
      set("spread.tensor", std::min(before_.tensor_spread, kStepSpread));
    return std::move(patch_);
  }

 private:
  std::size_t part_of(CostClass c) {
    const auto at = std::ranges::find(parts_, c);
    if (at != parts_.end()) return static_cast<std::size_t>(at - parts_.begin());
    parts_.push_back(c);
    return parts_.size() - 1;
  }

  void set(std::string name, double value) { patch_.values.emplace_back(std::move(name), value); }

  [[nodiscard]] std::size_t tensor_rows() const {
    std::size_t rows = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (limit_of(parts_[p]) == CostLimit::kTensor) rows += fit_.parts[p].rows;
    }
    return rows;
  }

  /// Where rows are: what is left of their scatter and of the doubt about their mean. Elsewhere:
  /// what the class had, and the part of the GPU's own doubt that the rows did not remove.
  [[nodiscard]] double spread_of(CostClass c, const PartEstimate& e, bool measured) const {
    const double old = before_.of(c).spread;
    const double doubt = kNormal90 * std::sqrt(e.variance);
    if (!measured) return std::hypot(old, std::min(doubt, before_.common_spread));
    const double shapes = kNormal90 * e.within / std::sqrt(kShapesInStep);
    return std::min(std::hypot(doubt, shapes), std::hypot(old, before_.common_spread));
  }

  static tl::unexpected<Error> refused(CostClass c, double scale) {
    char times[32];
    std::snprintf(times, sizeof times, "%.3g", scale);
    return fail(ErrorCode::kBadInput,
                "the measured operators of class " + std::string(name_of(c)) + " take " + times +
                    " times as long as this GPU should; is it another GPU, or throttled?");
  }

  const Coefficients& before_;
  std::vector<CostClass> parts_;
  ShrinkageFit fit_;
  CoefficientPatch patch_;
};

}  // namespace

Micros launch_gap(Micros launch_floor, const std::vector<TimedKernel>& rows) {
  if (launch_floor > Micros(0) || rows.empty()) return kGapShare * launch_floor;
  Micros gap(HUGE_VAL);
  for (const TimedKernel& row : rows)
    gap = std::min(gap, std::max(Micros(0), row.measured - row.predicted));
  return gap;
}

double timing_variance(double spread) { return std::pow(std::max(spread, kLeastNoise), 2); }

std::optional<ClassRow> class_row(const TimedKernel& timed, Micros gap) {
  const Micros beyond = timed.measured - gap;
  if (beyond <= Micros(0) || beyond <= kShortestBeyondGap * gap) return std::nullopt;
  return ClassRow{timed.cost_class, std::log(beyond / timed.predicted),
                  timing_variance(std::max(timed.spread, kGapJitter * gap / beyond))};
}

Result<CoefficientPatch> fit_classes(const std::vector<ClassRow>& rows,
                                     const Coefficients& before) {
  return ClassFit(rows, before).patch();
}

}  // namespace stoker
