#pragma once

namespace stoker {

/// A machine file's TFLOP/s and GB/s in FLOP/s and bytes/s.
inline constexpr double kTera = 1e12;
inline constexpr double kGiga = 1e9;

}  // namespace stoker
