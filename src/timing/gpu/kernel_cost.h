#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/units.h"
#include "device/machine.h"
#include "program/program.h"
#include "timing/gpu/coefficients.h"

namespace stoker {

class GpuForests;

enum class Bound : std::uint8_t { kCompute, kMemory, kLatency };
[[nodiscard]] std::string_view name_of(Bound bound);

/// Device time of one kernel: `time = floor + max(compute, memory)`, in nanoseconds.
/// Invariants: all finite, none negative, time >= floor.
struct KernelCost {
  Nanos time, compute, memory;
  Bound bound = Bound::kLatency;
  CostClass cost_class = CostClass::kUncosted;
  bool has_rule = true;  ///< false: no cost rule applies, costed by its bytes
};

/// A GPU as the cost rules see it: sustained rates instead of data-sheet peaks. Made once for many
/// kernels.
struct GpuRates {
  /// Sustained FLOP/s by MathUnit; never zero. A unit that the GPU lacks has the rate of what
  /// stands in.
  std::array<double, 7> rate{};
  std::array<bool, 7> tensor{};  ///< whether the unit really is a tensor core here
  double bandwidth = 0;          ///< bytes/s, nameplate
  double l2_bytes = 0;
  double pcie = 0;  ///< bytes/s
  int sms = 1;
  Architecture architecture = Architecture::kOther;
  bool guessed = false;  ///< a figure was missing from the GPU's data and a stand-in was used
};

/// Applies power cap, tensor discount and stand-ins for what the data sheet lacks.
[[nodiscard]] GpuRates gpu_rates(const Gpu& gpu, const Coefficients& coefficients);

/// Data-sheet FLOP/s of a unit, uncapped; what MFU is measured against. Never zero.
[[nodiscard]] double nominal_peak(const Gpu& gpu, MathUnit unit);
/// A CPU's vectors, in FP32. Never zero.
[[nodiscard]] double nominal_peak(const Cpu& cpu);

/// Cost of kernels on one device. Pure: same kernel, same answer. Where trees have learned the
/// times of a family of kernels on the chip, their word replaces the efficiencies of the rules;
/// `scale` of the class multiplies either.
class CostModel {
 public:
  CostModel(const Gpu& gpu, const Coefficients& coefficients);

  [[nodiscard]] KernelCost cost_of(const Kernel& kernel) const;
  /// Host-to-device copies differ by the host's memory.
  void set_pinned(bool pinned) { pinned_ = pinned; }
  [[nodiscard]] const GpuRates& device() const { return device_; }
  [[nodiscard]] const Coefficients& coefficients() const { return coefficients_; }

 private:
  Coefficients coefficients_;
  GpuRates device_;
  std::shared_ptr<const GpuForests> learned_;  ///< null where no tree speaks
  bool pinned_ = true;
};

[[nodiscard]] KernelCost cost_of(const Kernel& kernel, const Gpu& gpu,
                                 const Coefficients& coefficients);

/// What the rules of one class group return to cost_of: seconds of arithmetic and of memory
/// traffic, each already divided by its efficiency, and which class the efficiencies came from.
struct RawCost {
  double compute = 0;  ///< seconds
  double memory = 0;   ///< seconds
  double latency = 0;  ///< seconds that neither hides: serial time steps, extra launches
  CostClass cost_class = CostClass::kUncosted;
  bool has_rule = true;
};

}  // namespace stoker
