#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "operators/kernel_class.h"

namespace stoker {

/// Grain of functions that share out rows, channels or images whatever their number.
inline constexpr std::int64_t kAlwaysShared = 1;
/// Grain of functions whose random numbers one thread draws.
inline constexpr std::int64_t kOneThread = std::numeric_limits<std::int64_t>::max();
/// Softmax shares out a sixteenth of the usual grain (native/cpu/SoftMaxKernel.cpp).
inline constexpr std::int64_t kSoftmaxGrain = 2048;

/// A function of ATen on a processor, by its name without the underscore of in-place forms.
struct CpuFunction {
  std::string_view name;
  CpuUse use;
};
[[nodiscard]] std::span<const CpuFunction> cpu_functions();
[[nodiscard]] bool has_cpu_function(std::string_view name);
/// What a function does, by its name, else what its class usually does.
[[nodiscard]] CpuUse cpu_use(std::string_view name, KernelClass kernel_class);

}  // namespace stoker
