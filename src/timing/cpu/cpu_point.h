#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "device/calibration_data.h"
#include "device/machine.h"
#include "program/program.h"
#include "timing/cpu/cpu_rules.h"
#include "timing/cpu/residual_process.h"

/// What is alike about two operators of a processor. Internal to src/timing.
namespace stoker {

[[nodiscard]] inline CpuGroup group_of(KernelClass kernel_class) {
  return row_of(kernel_class).cpu_group;
}

/// Numbers for names, the same for as long as it lives.
class NameNumbers {
 public:
  [[nodiscard]] std::uint32_t of(std::string_view name);

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

[[nodiscard]] ProcessPoint point_of(const Kernel& kernel, std::string_view function, int threads,
                                    const CpuCost& cost, NameNumbers& names);

/// The kernel that a measured row of a processor runs, as lowering makes it there.
[[nodiscard]] Result<Kernel> cpu_kernel_of(const MeasuredOperator& measured, const Cpu& cpu);

}  // namespace stoker
