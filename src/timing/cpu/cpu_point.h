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
#include "timing/learned/residual_process.h"

/// What is alike about two operators of a processor. Internal to src/timing.
namespace stoker {

/// Classes whose operators err alike; each has a process of its own.
enum class CpuGroup : std::uint8_t {
  kProduct,
  kConvolution,
  kDepthwise,
  kAttention,
  kNormalization,
  kSoftmax,
  kReduction,
  kElementwise,  ///< with copies, fills and the optimizer's
  kGather,
  kPooling,
  kOther
};
inline constexpr std::size_t kCpuGroups = 11;
[[nodiscard]] CpuGroup group_of(KernelClass kernel_class);
[[nodiscard]] std::string_view name_of(CpuGroup group);

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
[[nodiscard]] Result<Kernel> cpu_kernel_of(const MeasuredOperator& measured, const Gpu& gpu);

}  // namespace stoker
