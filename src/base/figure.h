#pragma once

#include <string>
#include <utility>

namespace stoker {

/// A predicted number with its 90 % band and what it rests on. Nothing is reported without one.
/// Invariant: low <= value <= high.
struct Figure {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string basis;  ///< short phrase: "simulation, V100 rows", "data sheet only", "measured here"
};

/// Relative band around a value: [value * (1 - below), value * (1 + above)].
struct Band {
  double below = 0;
  double above = 0;
};

[[nodiscard]] inline Figure with_band(double value, Band band, std::string basis) {
  return {value, value * (1 - band.below), value * (1 + band.above), std::move(basis)};
}

/// What is known without a band: a count, a sum of sizes.
[[nodiscard]] inline Figure exact(double value, std::string basis) {
  return {value, value, value, std::move(basis)};
}

/// A figure in another unit, or so many times over: its band and basis go with it.
[[nodiscard]] inline Figure scaled(Figure figure, double factor) {
  figure.value *= factor;
  figure.low *= factor;
  figure.high *= factor;
  return figure;
}

}  // namespace stoker
