#include "tune/method/noise.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stoker::tune {
namespace {

constexpr double kBothEnds = 1.96, kPower = 0.8416;  // normal quantiles of 97.5 % and 80 %
constexpr double kMostRepetitions = 1000;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Pooled standard deviation within settings; 0 without repetitions.
double spread(const std::vector<SettingScores>& settings) {
  double sum = 0, degrees = 0;
  for (const SettingScores& one : settings) {
    const double middle = mean(one.scores);
    for (const double score : one.scores) sum += (score - middle) * (score - middle);
    degrees += static_cast<double>(one.scores.size()) - 1;
  }
  return degrees > 0 ? std::sqrt(sum / degrees) : 0;
}

}  // namespace

double repetitions_to_tell(double difference, double noise) {
  if (difference == 0) return INFINITY;
  const double ratio = (kBothEnds + kPower) * noise / difference;
  return std::ceil(2 * ratio * ratio);
}

NoiseVerdict judge_noise(std::vector<SettingScores> settings, const Objective& objective,
                         const std::string& how) {
  if (settings.size() < 2) return {};
  std::ranges::sort(settings, [](const SettingScores& a, const SettingScores& b) {
    return mean(a.scores) > mean(b.scores);
  });
  const auto repeats = static_cast<double>(settings[0].scores.size());
  double noise = spread(settings);
  const bool repeated = noise > 0;
  if (!repeated) {
    for (const SettingScores& one : settings) noise = std::max(noise, one.noise);
  }
  const double chance = kBothEnds * noise * std::sqrt(2 / repeats);
  const double first = mean(settings[0].scores), second = mean(settings[1].scores),
               last = mean(settings.back().scores);
  if (settings.size() > 2 && first == last)
    return {true, fmt::format("all {} have {}: the metric does not depend on {}", settings.size(),
                              objective.result_text(first),
                              how.empty() ? "the learning rate, or the command does not use it"
                                          : "what was varied, or the command does not use it")};
  if (noise == 0 || first - second > chance) return {};
  const double needed = repetitions_to_tell(first - second, noise);
  NoiseVerdict verdict;
  verdict.nothing_decided = settings.size() > 2 && first - last <= chance;
  const std::string of = repeated ? "between repetitions" : "between evaluations of one run";
  verdict.text = fmt::format(
      "{} of {} and {} of {} differ by {:.2g}, and the noise {} is {:.2g}; {}",
      objective.result_text(first), settings[0].name, objective.result_text(second),
      settings[1].name, first - second, of, noise,
      needed > kMostRepetitions
          ? std::string("no reasonable number of repetitions would settle it: take either")
          : fmt::format("about {:.0f} repetitions of each would settle it ({})",
                        std::max(needed, 2.0),
                        how.empty() ? fmt::format("--repeat {:.0f}", std::max(needed, 2.0)) : how));
  return verdict;
}

}  // namespace stoker::tune
