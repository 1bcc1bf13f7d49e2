#pragma once

#include "base/units.h"

/// Durations in the units of files, papers and formulas. What a model adds up is Nanos; these say
/// which other unit a number has, and the functions below are the only place that knows the
/// factors.
namespace stoker {

using Micros = Quantity<struct MicrosTag, double>;
using Seconds = Quantity<struct SecondsTag, double>;

[[nodiscard]] constexpr Nanos as_nanos(Micros t) { return Nanos(t.count() * 1e3); }
[[nodiscard]] constexpr Nanos as_nanos(Seconds t) { return Nanos(t.count() * 1e9); }
[[nodiscard]] constexpr Micros as_micros(Nanos t) { return Micros(t.count() * 1e-3); }
[[nodiscard]] constexpr Micros as_micros(Seconds t) { return Micros(t.count() * 1e6); }
[[nodiscard]] constexpr Seconds as_seconds(Nanos t) { return Seconds(t.count() * 1e-9); }
[[nodiscard]] constexpr Seconds as_seconds(Micros t) { return Seconds(t.count() * 1e-6); }

constexpr Nanos operator""_ns(long double t) { return Nanos(static_cast<double>(t)); }
constexpr Nanos operator""_ns(unsigned long long t) { return Nanos(static_cast<double>(t)); }
constexpr Micros operator""_us(long double t) { return Micros(static_cast<double>(t)); }
constexpr Micros operator""_us(unsigned long long t) { return Micros(static_cast<double>(t)); }
constexpr Seconds operator""_s(long double t) { return Seconds(static_cast<double>(t)); }
constexpr Seconds operator""_s(unsigned long long t) { return Seconds(static_cast<double>(t)); }

}  // namespace stoker
