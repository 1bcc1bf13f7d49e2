#pragma once

#include <optional>
#include <string_view>

#include "device/device.h"
#include "memory/glibc/heap.h"

namespace stoker {

/// Who hands out memory on a kind of device, and how that is told: PyTorch's caching allocator on a
/// GPU, malloc's heap on a CPU.
struct MemoryModel {
  std::optional<HeapRules> heap;  ///< nullopt: the caching allocator
  /// Whether an allocation beyond the device's memory fails with a message of PyTorch's; else
  /// nothing refuses, and the system swaps or ends the process.
  bool refuses = true;
  std::string_view simulation;  ///< "PyTorch's allocator simulated", in a figure's basis
  std::string_view outside;     ///< what lies outside: "CUDA context and libraries"
  std::string_view cure;        ///< where not even the smallest batch fits
  std::string_view error_case;  ///< whose measured errors hold; empty: the program decides
};

/// The one place where the memory forecast asks what the device is.
[[nodiscard]] const MemoryModel& memory_model_of(const Device& device);

}  // namespace stoker
