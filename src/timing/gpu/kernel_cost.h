#pragma once

#include <memory>

#include "base/units.h"
#include "device/gpu.h"
#include "program/copy_way.h"
#include "program/program.h"
#include "timing/common/bound.h"
#include "timing/common/coefficients.h"
#include "timing/common/learned_times.h"
#include "timing/gpu/gpu_rates.h"

namespace stoker {

/// Device time of one kernel: `time = floor + max(compute, memory)`.
/// Invariants: all finite, none negative, time >= floor.
struct KernelCost {
  Nanos time, compute, memory;
  Bound bound = Bound::kLatency;
  CostClass cost_class = CostClass::kUncosted;
  bool has_rule = true;  ///< false: no cost rule applies, costed by its bytes
};

/// Cost of kernels on one device. Pure: same kernel, same answer. Where trees have learned the
/// times of a family of kernels on the chip, their word replaces the efficiencies of the rules;
/// `scale` of the class multiplies either.
class CostModel {
 public:
  CostModel(const Gpu& gpu, const Coefficients& coefficients);

  [[nodiscard]] KernelCost cost_of(const Kernel& kernel) const;
  /// Host-to-device copies differ by the host's memory.
  void set_copy(CopyWay copy) { copy_ = copy; }
  [[nodiscard]] const GpuRates& device() const { return device_; }
  [[nodiscard]] const Coefficients& coefficients() const { return coefficients_; }

 private:
  Coefficients coefficients_;
  GpuRates device_;
  std::shared_ptr<const LearnedKernels> learned_;  ///< null where nothing was learned
  CopyWay copy_ = CopyWay::kBlocking;
};

[[nodiscard]] KernelCost cost_of(const Kernel& kernel, const Gpu& gpu,
                                 const Coefficients& coefficients);

}  // namespace stoker
