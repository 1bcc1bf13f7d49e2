#pragma once

#include <string>
#include <vector>

#include "tune/curve/curve.h"

namespace stoker::tune {

/// What trials of one setting came to: results, where more is better.
struct SettingScores {
  std::string name;              ///< "lr 0.01"
  std::vector<double> scores{};  ///< one a repetition
  double noise = 0;              ///< of its curves, where there are no repetitions
};

struct NoiseVerdict {
  bool nothing_decided = false;  ///< even best and worst differ by less than the noise
  std::string text{};            ///< empty: best and second are told apart
};

/// Whether the best of some settings is better than the second by more than chance (95 %), and how
/// many repetitions of each would tell (80 % of the time). The spread between repetitions where
/// there are some; else the noise between evaluations of one run, which is less than that of runs.
/// `how` says how to repeat; empty: --repeat N.
[[nodiscard]] NoiseVerdict judge_noise(std::vector<SettingScores> settings,
                                       const Objective& objective, const std::string& how = "");

/// Repetitions of each of two settings that differ by `difference` with a standard deviation of
/// `noise`, so that a test at 5 % finds it in 80 %: 2 (1.96 + 0.84)^2 (noise / difference)^2.
[[nodiscard]] double repetitions_to_tell(double difference, double noise);

}  // namespace stoker::tune
