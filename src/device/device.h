#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "device/cpu.h"
#include "device/gpu.h"

namespace stoker {

/// What trains: a GPU or a CPU. What both have is read through `->`. What only one has is reached
/// by `visit`, which asks for an answer for each kind, or by gpu() and cpu(), which are null for
/// the other: the cores of a GPU or the links of a CPU cannot be written.
class Device {
 public:
  Device() = default;  ///< a GPU of which nothing is known
  // A GPU is a device, and so is a CPU: both convert by themselves.
  Device(Gpu gpu) : device_(std::move(gpu)) {}  // NOLINT(google-explicit-constructor)
  Device(Cpu cpu) : device_(std::move(cpu)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const DeviceFacts& facts() const {
    if (const Cpu* one = cpu()) return *one;
    return *gpu();
  }
  [[nodiscard]] DeviceFacts& facts() {
    if (Cpu* one = cpu()) return *one;
    return *gpu();
  }
  const DeviceFacts* operator->() const { return &facts(); }
  DeviceFacts* operator->() { return &facts(); }

  [[nodiscard]] const Gpu* gpu() const { return std::get_if<Gpu>(&device_); }
  [[nodiscard]] Gpu* gpu() { return std::get_if<Gpu>(&device_); }
  [[nodiscard]] const Cpu* cpu() const { return std::get_if<Cpu>(&device_); }
  [[nodiscard]] Cpu* cpu() { return std::get_if<Cpu>(&device_); }

  /// The answer of the one of the two functions that takes this kind of device.
  template <class OnGpu, class OnCpu>
  auto visit(OnGpu&& on_gpu, OnCpu&& on_cpu) const {
    using Answer = std::invoke_result_t<OnGpu, const Gpu&>;
    static_assert(std::is_same_v<Answer, std::invoke_result_t<OnCpu, const Cpu&>>,
                  "both kinds of device give the same kind of answer");
    if (const Cpu* one = cpu()) return std::forward<OnCpu>(on_cpu)(*one);
    return std::forward<OnGpu>(on_gpu)(*gpu());
  }

 private:
  std::variant<Gpu, Cpu> device_;
};

}  // namespace stoker
