#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace stoker {

/// At most this many named dimensions in one step (batch, seq_len, target_len, image side ...).
inline constexpr std::size_t kMaxDimensions = 6;

/// Values of the step's dimensions, each already divided by the dimension's unit; in their order.
using DimensionValues = std::array<std::int64_t, kMaxDimensions>;

/// coefficient * product of dimension[i] ^ exponents[i]
struct Monomial {
  std::int64_t coefficient = 0;
  std::array<std::uint8_t, kMaxDimensions> exponents{};
};

/// An integer polynomial in a step's named dimensions (docs/reference/step-file.md). The empty one
/// is zero.
class Polynomial {
 public:
  Polynomial() = default;
  explicit Polynomial(std::int64_t constant);
  explicit Polynomial(std::vector<Monomial> terms) : terms_(std::move(terms)) {}

  [[nodiscard]] std::span<const Monomial> terms() const { return terms_; }
  [[nodiscard]] bool is_constant() const;
  /// nullopt when the value leaves the range of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> evaluate(const DimensionValues& at) const;

 private:
  std::vector<Monomial> terms_;
};

}  // namespace stoker
