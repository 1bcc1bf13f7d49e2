#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "timing/cpu/cpu_rates.h"

/// What ATen's operators cost on a processor before anything is measured: docs/models/cpu-time.md.
/// Internal to src/timing.
namespace stoker {

/// Where an operator's data lies when it starts.
enum class CpuData : std::uint8_t {
  kWarm,  ///< in the caches, as far as they hold it: the same call ran just before
  kCold,  ///< in memory, or the last-level cache where that holds everything
  kStep   ///< in a training step: what the operator before has written is near, the rest is not
};

/// What surrounds an operator.
struct CpuSurroundings {
  CpuData data = CpuData::kWarm;
  StepPhase phase = StepPhase::kForward;  ///< kStep: of the step
  double step_bytes = 0;                  ///< kStep: of everything that a step touches
};

/// The time of one call, beyond what a call on one number takes.
struct CpuCost {
  Seconds compute, memory;  ///< beside each other
  Seconds rest;             ///< parallel regions, changes of layout
  /// Bytes that it moves, and those of them that come from the second-level cache and from memory.
  double bytes = 0, near = 0, far = 0;
  bool has_rule = true;

  [[nodiscard]] double near_share() const { return bytes > 0 ? near / bytes : 0; }
  [[nodiscard]] double far_share() const { return bytes > 0 ? far / bytes : 0; }
  [[nodiscard]] Seconds total() const { return rest + (compute > memory ? compute : memory); }
};

/// Threads that at::parallel_for gives `elements` (ATen/ParallelOpenMP.h: as many as there are
/// grains).
[[nodiscard]] int threads_for(std::int64_t elements, std::int64_t grain, int threads);

/// Rates by threads, made once.
class CpuProcessor {
 public:
  CpuProcessor(const Cpu& cpu, int threads);

  [[nodiscard]] int threads() const { return static_cast<int>(rates_.size()); }
  [[nodiscard]] const CpuRates& rates(int threads) const;
  [[nodiscard]] const CpuRates& rates() const { return rates_.back(); }
  [[nodiscard]] double peak(MathUnit unit) const;

 private:
  std::vector<CpuRates> rates_;  ///< of 1, 2 ... threads
  double tensor_ = 1;            ///< BF16 products over FP32 ones
};

[[nodiscard]] CpuCost cpu_cost(const Kernel& kernel, std::string_view function,
                               const CpuProcessor& processor, const CpuSurroundings& where);

}  // namespace stoker
