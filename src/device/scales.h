#pragma once

namespace stoker {

/// FLOP/s and bytes/s in a TFLOP/s and a GB/s, in which data sheets and machine files state rates.
inline constexpr double kTera = 1e12;
inline constexpr double kGiga = 1e9;

}  // namespace stoker
