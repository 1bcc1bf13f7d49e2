#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace stoker {

/// SplitMix64 (Steele, Lea, Flood 2014): eight bytes of state, the same sequence on every platform,
/// so that a probe and a simulation can be repeated from their seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(bound));
  }
  /// Standard normal (Box-Muller, one of the pair).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace stoker
