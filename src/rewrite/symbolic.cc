#include "rewrite/symbolic.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace stoker {
namespace {

constexpr std::int64_t kLimit = std::numeric_limits<std::int64_t>::max();

std::int64_t product_of(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) == (b < 0) ? kLimit : -kLimit;
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(a, b, &result)) return result;
  return a > 0 ? kLimit : -kLimit;
}

void add_term(std::vector<Monomial>& terms, const Monomial& term) {
  const auto it = std::find_if(terms.begin(), terms.end(),
                               [&](const Monomial& m) { return m.exponents == term.exponents; });
  if (it == terms.end()) {
    terms.push_back(term);
  } else {
    it->coefficient = sum_of(it->coefficient, term.coefficient);
  }
}

Polynomial without_zeros(std::vector<Monomial> terms) {
  std::erase_if(terms, [](const Monomial& m) { return m.coefficient == 0; });
  return Polynomial(std::move(terms));
}

}  // namespace

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  std::vector<Monomial> terms;
  for (const Polynomial* p : {&a, &b}) {
    for (const Monomial& term : p->terms()) add_term(terms, term);
  }
  return without_zeros(std::move(terms));
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  std::vector<Monomial> terms;
  for (const Monomial& x : a.terms()) {
    for (const Monomial& y : b.terms()) {
      Monomial term{product_of(x.coefficient, y.coefficient), x.exponents};
      for (std::size_t d = 0; d < kMaxDimensions; ++d)
        term.exponents[d] = static_cast<std::uint8_t>(term.exponents[d] + y.exponents[d]);
      add_term(terms, term);
    }
  }
  return without_zeros(std::move(terms));
}

bool is_same(const Polynomial& a, const Polynomial& b) {
  return (a + scaled(b, -1)).terms().empty();
}

Polynomial scaled(const Polynomial& p, std::int64_t factor, std::int64_t divisor) {
  std::vector<Monomial> terms(p.terms().begin(), p.terms().end());
  for (Monomial& term : terms) {
    // Divide first where that goes, so that large parameters do not overflow.
    term.coefficient = term.coefficient % divisor == 0
                           ? product_of(term.coefficient / divisor, factor)
                           : product_of(term.coefficient, factor) / divisor;
  }
  return without_zeros(std::move(terms));
}

Polynomial with_dimension_scaled(const Polynomial& p, std::size_t dimension, std::int64_t factor) {
  std::vector<Monomial> terms(p.terms().begin(), p.terms().end());
  for (Monomial& term : terms) {
    for (int power = 0; power < term.exponents[dimension]; ++power)
      term.coefficient = product_of(term.coefficient, factor);
  }
  return without_zeros(std::move(terms));
}

}  // namespace stoker
