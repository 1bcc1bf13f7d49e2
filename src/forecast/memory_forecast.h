#pragma once

#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "forecast/knowledge.h"
#include "lower/job.h"
#include "lower/program.h"
#include "machine/machine.h"
#include "memory/largest_batch.h"
#include "memory/replay.h"
#include "step/step.h"

namespace stoker {

/// Device memory of one job, per GPU. Two questions, never mixed: what nvidia-smi would show on a
/// device without limit (the peaks), and whether and how far it runs on this one (fits, largest
/// batch).
struct MemoryForecast {
  Figure device_peak;     ///< bytes: reserved_peak and what lies outside the allocator
  Figure reserved_peak;   ///< bytes, torch.cuda.max_memory_reserved
  Figure allocated_peak;  ///< bytes, torch.cuda.max_memory_allocated
  Bytes usable;           ///< of the device
  bool fits = false;
  bool only_by_flushing = false;
  std::string out_of_memory;  ///< PyTorch's message when it does not fit
  MemoryOutcome outcome;      ///< of the unconstrained replay: breakdown, fragmentation
  std::vector<OutsideMemory> outside;
};

/// How far the batch can grow: `value` by the simulation, `low` what is safe (a forecast that is
/// too small by its measured error still fits), `high` what may run with luck.
struct BatchLimits {
  std::int64_t value = 0, low = 0, high = 0;
  std::int64_t first_failing = 0;  ///< 0: the search ended at its limit
  Bytes missing;                   ///< for batch 1, when not even that runs
  std::string basis;
};

[[nodiscard]] MemoryForecast forecast_memory(const Program& program, const Machine& machine,
                                             const AllocatorConfig& allocator,
                                             const Knowledge& knowledge,
                                             const std::string& error_case);

/// Largest batches of a job (its own `batch` is ignored).
[[nodiscard]] Result<BatchLimits> forecast_batch_limits(const Step& step, const Job& job,
                                                        const Machine& machine,
                                                        const AllocatorConfig& allocator,
                                                        const Knowledge& knowledge);

/// Which measured rows this job resembles: "cnn-fp32-benchmark", "transformer-amp-default", ...
[[nodiscard]] std::string memory_error_case(const Program& program, const Job& job);

}  // namespace stoker
