#pragma once

#include <cstdint>

#include "step/polynomial.h"

/// Arithmetic on symbolic sizes, for what rewrites a step. Coefficients that would leave 64 bits
/// stay at the limit, where Sizes::at then refuses them.
namespace stoker {

[[nodiscard]] Polynomial operator+(const Polynomial& a, const Polynomial& b);
[[nodiscard]] Polynomial operator*(const Polynomial& a, const Polynomial& b);

/// p * factor / divisor, which must go without remainder in every coefficient.
[[nodiscard]] Polynomial scaled(const Polynomial& p, std::int64_t factor, std::int64_t divisor = 1);

/// Equal at all values of the dimensions.
[[nodiscard]] bool is_same(const Polynomial& a, const Polynomial& b);

/// p with `factor` times the dimension's value in its place.
[[nodiscard]] Polynomial with_dimension_scaled(const Polynomial& p, std::size_t dimension,
                                               std::int64_t factor);

}  // namespace stoker
