#pragma once

#include <string_view>
#include <vector>

#include "base/durations.h"
#include "device/calibration_data.h"
#include "device/machine.h"

/// A processor by its data sheet and by what was measured on it (docs/models/cpu-time.md). Internal
/// to src/timing.
namespace stoker {

/// What so many threads of a processor do together. Nothing is zero or infinite.
struct CpuRates {
  int threads = 1;
  double products = 0;  ///< FLOP/s of large FP32 matrix products
  double cycles = 0;    ///< clock cycles/s of all threads together
  double lanes = 16;    ///< FP32 numbers in a vector
  /// Bytes/s from the second-level cache, the last-level cache, memory; and how much the caches
  /// hold.
  double l2 = 0, l3 = 0, memory = 0;
  double l2_bytes = 0, l3_bytes = 0;
  Seconds region;  ///< to open and close a parallel region; 0 with one thread
};

/// Host work beside an operator's own.
struct CpuHost {
  Seconds forward;    ///< one operator in the forward: Python, module, autograd's node
  Seconds backward;   ///< one operator of the autograd engine
  Seconds optimizer;  ///< one operator on one tensor in an optimizer's loop
  Seconds view;
  Seconds step;   ///< Python between steps
  Seconds call;   ///< an ATen call on one number without autograd: contained in every measured row
  Seconds fault;  ///< first touch of a page of 4 KiB
  bool measured = false;
};

/// The value of a figure at `threads`: as measured there (or whatever the threads, where it was
/// measured so); else between and beyond the measured ones by Amdahl's law, the time of one unit
/// being a + b/threads. `rate`: more is faster. 0 where it was not measured.
[[nodiscard]] double figure_at(const Calibration* calibration, std::string_view name, int threads,
                               bool rate);

/// Threads that PyTorch runs operators with: `asked`, or all cores.
[[nodiscard]] int threads_of(const Cpu& cpu, int asked);

[[nodiscard]] CpuRates cpu_rates(const Cpu& cpu, int threads);
[[nodiscard]] CpuHost cpu_host(const Cpu& cpu, int threads, double core_speed);

}  // namespace stoker
