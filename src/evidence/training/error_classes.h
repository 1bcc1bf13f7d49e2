#pragma once

#include <vector>

#include "evidence/training/training_validation.h"

/// Internal to src/evidence.
namespace stoker {

/// Place of the host's work behind the operator classes.
inline constexpr std::size_t kHostClass = kKernelClasses;
inline constexpr std::size_t kErrorClasses = kKernelClasses + 1;

/// "convolution", "host".
[[nodiscard]] std::string error_class_name(std::size_t index);

/// How many times as long as forecast each class takes: mean and standard deviation.
struct ClassFactors {
  std::array<double, kErrorClasses> mean{};
  std::array<double, kErrorClasses> deviation{};
};

/// Bayesian linear regression: each measured phase (where phases were not told apart, each step) is
/// the sum of its classes' forecast times, each times a factor that is 1 +- kPriorDeviation before
/// anything was measured, with a relative noise of the repetitions' spread and kLeastNoise. A class
/// that the measured phases say nothing of keeps its prior.
[[nodiscard]] ClassFactors class_factors(const std::vector<const ComparedRun*>& runs);

/// What each class adds to the errors of the runs that count, largest first; those below a
/// thousandth of the time are left out.
[[nodiscard]] std::vector<ClassError> error_classes(const std::vector<ComparedRun>& runs);

}  // namespace stoker
