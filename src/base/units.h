#pragma once

#include <compare>
#include <cstdint>

namespace stoker {

/// A number with a unit. Arithmetic that keeps the unit is defined; anything else goes through
/// `.count()` and shows in the code.
template <class Tag, class Rep>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_(count) {}

  [[nodiscard]] constexpr Rep count() const { return count_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator-() const { return Quantity(-count_); }
  constexpr Quantity& operator+=(Quantity other) { return count_ += other.count_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return count_ -= other.count_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity(a.count_ / k); }
  /// Ratio of two like quantities.
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.count_) / static_cast<double>(b.count_);
  }

 private:
  Rep count_{};
};

/// Memory sizes, exact.
using Bytes = Quantity<struct BytesTag, std::int64_t>;
/// Durations of the models, in nanoseconds; fractional because they are predictions.
using Nanos = Quantity<struct NanosTag, double>;
/// Floating-point operations (a multiply-add counts as two).
using Flops = Quantity<struct FlopsTag, double>;

inline constexpr Bytes kKiB{1024};
inline constexpr Bytes kMiB{1024 * 1024};
inline constexpr Bytes kGiB{1024 * 1024 * 1024};
inline constexpr Nanos kMicrosecond{1e3};
inline constexpr Nanos kMillisecond{1e6};
inline constexpr Nanos kSecond{1e9};
inline constexpr double kSecondsAnHour = 3600;
inline constexpr double kJoulesPerKwh = 3.6e6;

[[nodiscard]] constexpr double milliseconds(Nanos t) { return t.count() * 1e-6; }
[[nodiscard]] constexpr double seconds(Nanos t) { return t.count() * 1e-9; }
[[nodiscard]] constexpr double mebibytes(Bytes b) { return b / kMiB; }
[[nodiscard]] constexpr double gibibytes(Bytes b) { return b / kGiB; }

}  // namespace stoker
