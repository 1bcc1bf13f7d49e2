#pragma once

#include <map>
#include <optional>
#include <string>

/// What a trial costs in electricity, by Zeus's measure (You, Chung, Chowdhury: Zeus, NSDI 2023):
/// weight * energy + (1 - weight) * power limit * time, in joules. A weight of 1 is energy alone,
/// one of 0 time alone.
namespace stoker::tune {

/// Mean draw of all GPUs of a trial together while it trains.
struct Power {
  double watts = 0, low = 0, high = 0;
  double limit = 0;  ///< that their boards are held to; 0: not known, and energy alone counts
  bool measured = false;

  /// "285 W of 300 W, measured" or "about 214 W [135-310] of 300 W, estimated".
  [[nodiscard]] std::string text() const;
};

/// What the sampler of a trial saw (docs/reference/study-store.md); nothing where no GPU told its
/// power.
[[nodiscard]] std::optional<Power> measured_power(const std::map<std::string, double>& resources);

/// A figure of joules with the ends of its band; both are the figure where power was measured.
struct Joules {
  double value = 0, low = 0, high = 0;

  /// "1.2 kJ", or "1.2 kJ [0.8-1.7]".
  [[nodiscard]] std::string text() const;
};
[[nodiscard]] Joules energy_of(const Power& power, double seconds);
[[nodiscard]] Joules cost_of(const Power& power, double seconds, double weight);

/// "1.2 kJ"
[[nodiscard]] std::string joules_text(double joules);

}  // namespace stoker::tune
