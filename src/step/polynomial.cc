#include "step/polynomial.h"

#include <algorithm>

namespace stoker {

Polynomial::Polynomial(std::int64_t constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

bool Polynomial::is_constant() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Monomial& m) { return m.exponents == decltype(m.exponents){}; });
}

std::optional<std::int64_t> Polynomial::evaluate(const DimensionValues& at) const {
  std::int64_t sum = 0;
  for (const Monomial& term : terms_) {
    std::int64_t product = term.coefficient;
    unsigned powers = 0;
    for (const std::uint8_t exponent : term.exponents) powers |= exponent;
    // Most sizes are the model's own.
    for (std::size_t d = 0; powers != 0 && d < kMaxDimensions; ++d) {
      for (int power = 0; power < term.exponents[d]; ++power) {
        if (__builtin_mul_overflow(product, at[d], &product)) return std::nullopt;
      }
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

}  // namespace stoker
