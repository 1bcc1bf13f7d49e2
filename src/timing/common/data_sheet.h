#pragma once

#include "device/cpu.h"
#include "device/gpu.h"
#include "program/program.h"

/// Rates by data sheets, with stand-ins where one lacks a figure, so that every answer is finite.
namespace stoker {

inline constexpr double kStandInFlops = 1e13;  ///< FP32, a mid-range GPU of 2018
inline constexpr double kHighestFlops = 1e18;  ///< nothing real is near; keeps absurd files finite

/// `value`, or `stand_in` where it is none, which sets `guessed`.
[[nodiscard]] double usable_figure(double value, double stand_in, double highest, bool& guessed);

/// Data-sheet rate, and whether a tensor core delivers it.
struct Peak {
  double rate;
  bool tensor;
};

/// What executes a unit's arithmetic on this GPU: itself, or the nearest that it has. `fp32`:
/// FLOP/s of its FP32 units.
[[nodiscard]] Peak peak_of(const Gpu& gpu, MathUnit unit, double fp32);

/// Data-sheet FLOP/s of a unit, uncapped; what MFU is measured against. Never zero.
[[nodiscard]] double nominal_peak(const Gpu& gpu, MathUnit unit);
/// A CPU's vectors, in FP32. Never zero.
[[nodiscard]] double nominal_peak(const Cpu& cpu);

}  // namespace stoker
