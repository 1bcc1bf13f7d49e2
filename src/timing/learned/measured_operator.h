#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/calibration_data.h"
#include "device/machine.h"
#include "program/program.h"
#include "timing/gpu/kernel_cost.h"

namespace stoker {

/// The kernel that a measured operator runs, as lowering would make it for this device. Refuses
/// unknown kinds, sizes, precisions and passes, and sizes that cannot be; errors stand at the row's
/// `where`.
[[nodiscard]] Result<Kernel> kernel_of(const MeasuredOperator& measured, const Gpu& gpu);
[[nodiscard]] Result<Kernel> kernel_of(const MeasuredOperator& measured, const Cpu& cpu);

/// What a cost says beyond the launch; above zero.
[[nodiscard]] Micros beyond_floor(const KernelCost& cost, const Kernel& kernel,
                                  const Coefficients& coefficients);

/// The least time that arithmetic and memory allow by the data sheet, the launch not counted.
/// Operands that fit in the L2 cost no memory time when they may lie there already.
[[nodiscard]] Micros least_time(const MeasuredOperator& measured, const Kernel& kernel,
                                const Gpu& gpu);
[[nodiscard]] Micros least_time(const MeasuredOperator& measured, const Kernel& kernel,
                                const Cpu& cpu);

/// Refuses a time that is below what physics allows by more than its spread and the clock's
/// headroom.
[[nodiscard]] Status check_physics(const MeasuredOperator& measured, const Kernel& kernel,
                                   const Gpu& gpu, Micros launch_floor);
/// A CPU launches nothing.
[[nodiscard]] Status check_physics(const MeasuredOperator& measured, const Kernel& kernel,
                                   const Cpu& cpu);

}  // namespace stoker
