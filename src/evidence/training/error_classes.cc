#include "evidence/training/error_classes.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

/// Forecasts of single classes miss by this before anything is measured (docs/models/time.md,
/// "Bands").
constexpr double kPriorDeviation = 0.25;
/// Share of a phase's time that repetitions do not show, such as the loop's own marks.
constexpr double kLeastNoise = 0.02;
constexpr double kWorthSaying = 1e-3;

using Row = std::array<double, kErrorClasses>;
using Matrix = std::array<Row, kErrorClasses>;

Row times_of(const ClassTimes& classes, std::initializer_list<StepPhase> phases) {
  Row row{};
  for (const StepPhase phase : phases) {
    const auto p = static_cast<std::size_t>(phase);
    for (std::size_t k = 0; k < kKernelClasses; ++k) row[k] += classes.by_phase[p][k];
    row[kHostClass] += classes.host[p];
  }
  return row;
}

/// Times further than this from their forecast are no error of a class: a slip of the unit, or a
/// damaged file.
constexpr double kMostOff = 1e3;

/// Normal equations of the factors' deviations from 1.
class Regression {
 public:
  Regression() {
    for (std::size_t k = 0; k < kErrorClasses; ++k)
      precision_[k][k] = 1 / (kPriorDeviation * kPriorDeviation);
  }

  /// `forecast` adds up to what was measured as `fact`, with `noise` relative to it.
  void add(const Row& forecast, double fact, double noise) {
    double sum = 0;
    for (const double ms : forecast) sum += ms;
    if (!(sum > 0) || !(fact > 0) || sum > kMostOff * fact || fact > kMostOff * sum) return;
    const double weight = 1 / (noise * noise);
    const double missing = (fact - sum) / fact;
    for (std::size_t i = 0; i < kErrorClasses; ++i) {
      const double a = forecast[i] / fact;
      if (a == 0) continue;
      right_[i] += weight * a * missing;
      for (std::size_t j = 0; j < kErrorClasses; ++j)
        precision_[i][j] += weight * a * forecast[j] / fact;
    }
  }

  /// Gauss-Jordan with the matrix's inverse beside it; it is symmetric and positive definite, so
  /// that no pivoting is needed.
  [[nodiscard]] ClassFactors solve() const {
    Matrix a = precision_, inverse{};
    for (std::size_t i = 0; i < kErrorClasses; ++i) inverse[i][i] = 1;
    for (std::size_t p = 0; p < kErrorClasses; ++p) {
      const double pivot = a[p][p];
      for (std::size_t j = 0; j < kErrorClasses; ++j) {
        a[p][j] /= pivot;
        inverse[p][j] /= pivot;
      }
      for (std::size_t i = 0; i < kErrorClasses; ++i) {
        if (i == p) continue;
        const double factor = a[i][p];
        for (std::size_t j = 0; j < kErrorClasses; ++j) {
          a[i][j] -= factor * a[p][j];
          inverse[i][j] -= factor * inverse[p][j];
        }
      }
    }
    ClassFactors factors;
    for (std::size_t i = 0; i < kErrorClasses; ++i) {
      double mean = 1;
      for (std::size_t j = 0; j < kErrorClasses; ++j) mean += inverse[i][j] * right_[j];
      factors.mean[i] = mean;
      factors.deviation[i] = std::sqrt(std::max(0.0, inverse[i][i]));
    }
    return factors;
  }

 private:
  Matrix precision_{};
  Row right_{};
};

}  // namespace

std::string error_class_name(std::size_t index) {
  if (index == kHostClass) return "host";
  return std::string(name_of(static_cast<KernelClass>(index)));
}

ClassFactors class_factors(const std::vector<const ComparedRun*>& runs) {
  Regression regression;
  for (const ComparedRun* run : runs) {
    const ClassTimes& c = run->forecast->classes;
    const TrainingFact& fact = *run->fact;
    const double noise = std::hypot(kLeastNoise, fact.spread / 2);
    const MeasuredPhases& m = fact.phases;
    if (m.forward && m.backward && m.optimizer) {
      regression.add(times_of(c, {StepPhase::kForward, StepPhase::kLoss}), milliseconds(*m.forward),
                     noise);
      regression.add(times_of(c, {StepPhase::kBackward}), milliseconds(*m.backward), noise);
      regression.add(times_of(c, {StepPhase::kOptimizer}), milliseconds(*m.optimizer), noise);
    } else {
      regression.add(times_of(c, {StepPhase::kLoad, StepPhase::kForward, StepPhase::kLoss,
                                  StepPhase::kBackward, StepPhase::kOptimizer}),
                     milliseconds(fact.step), noise);
    }
  }
  return regression.solve();
}

std::vector<ClassError> error_classes(const std::vector<ComparedRun>& runs) {
  std::vector<const ComparedRun*> counted;
  Row times{};
  double forecast = 0, measured = 0;
  for (const ComparedRun& run : runs) {
    if (!run.counts()) continue;
    counted.push_back(&run);
    const Row row =
        times_of(run.forecast->classes, {StepPhase::kLoad, StepPhase::kForward, StepPhase::kLoss,
                                         StepPhase::kBackward, StepPhase::kOptimizer});
    for (std::size_t k = 0; k < kErrorClasses; ++k) {
      times[k] += row[k];
      forecast += row[k];
    }
    measured += milliseconds(run.fact->step);
  }
  std::vector<ClassError> errors;
  if (counted.empty() || !(forecast > 0)) return errors;
  const ClassFactors factors = class_factors(counted);
  for (std::size_t k = 0; k < kErrorClasses; ++k) {
    if (times[k] < kWorthSaying * forecast) continue;
    errors.push_back({error_class_name(k), times[k] / forecast, factors.mean[k],
                      factors.deviation[k], (factors.mean[k] - 1) * times[k] / measured});
  }
  std::ranges::stable_sort(errors, [](const ClassError& a, const ClassError& b) {
    return std::fabs(a.carried) > std::fabs(b.carried);
  });
  return errors;
}

}  // namespace stoker
