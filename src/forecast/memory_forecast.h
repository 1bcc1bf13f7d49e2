#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "device/machine.h"
#include "forecast/knowledge.h"
#include "memory/replay/largest_batch.h"
#include "memory/replay/replay.h"
#include "program/job.h"
#include "program/program.h"
#include "step/step.h"

namespace stoker {

/// Whether a job runs in a device's memory, its forecast's error considered.
enum class MemoryVerdictWord : std::uint8_t {
  kFits,       ///< what it needs at most lies within what there is
  kRisky,      ///< that, or the lower part of the band, crosses what there is, or it runs only by
               ///< giving the cache back
  kDoesNotFit  ///< all of the band lies beyond, or the allocator fails within it
};
/// "FITS", "RISKY", "DOES NOT FIT".
[[nodiscard]] std::string_view name_of(MemoryVerdictWord verdict);

/// Device memory of one job, per GPU; on a CPU the resident memory of its process, where
/// `device_peak` is the resident set's peak, `reserved_peak` its heap's, `allocated_peak` that of
/// what lives in it. Two questions, never mixed: what nvidia-smi would show on a device without
/// limit (the peaks), and whether and how far it runs on this one (fits, largest batch).
struct MemoryForecast {
  Figure device_peak;     ///< bytes: reserved_peak and what lies outside the allocator
  Figure reserved_peak;   ///< bytes, torch.cuda.max_memory_reserved
  Figure allocated_peak;  ///< bytes, torch.cuda.max_memory_allocated
  Bytes usable;           ///< of the device
  Bytes nameplate;        ///< of the device, by its data sheet
  bool fits = false;      ///< by the forecast itself, its error left aside
  bool only_by_flushing = false;
  MemoryVerdictWord verdict = MemoryVerdictWord::kDoesNotFit;
  std::string out_of_memory;  ///< PyTorch's message when it does not fit
  std::string peak_words;     ///< where the allocated peak lies: "optimizer step", "validation"
  std::string failure_words;  ///< where it runs out, when it does not fit
  MemoryOutcome outcome;      ///< of the unconstrained replay: breakdown, fragmentation
  std::vector<OutsideMemory> outside;
};

/// How far the batch can grow: `value` by the simulation, `low` what fits surely (its verdict is
/// kFits: a forecast that is too small by its measured error still fits; 0: none), `high` what may
/// run with luck.
struct BatchLimits {
  std::int64_t value = 0, low = 0, high = 0;
  std::int64_t first_failing = 0;  ///< 0: the search ended at its limit
  Bytes missing;                   ///< for batch 1, when not even that runs
  std::string failing_pass;        ///< the extra pass that batch 1 fails in; empty: in training
  /// With a validation pass: what `low` would be without it, where that is more; else 0. The batch
  /// of the validation is a setting of its own, so this is what a smaller one gives back.
  std::int64_t low_in_training = 0;
  std::string basis;
};

/// How a program's memory is replayed on this machine: PyTorch's caching allocator on a GPU,
/// malloc's heap (memory/glibc/heap.h) on a CPU.
[[nodiscard]] ReplayOptions replay_options(const Machine& machine, const AllocatorConfig& allocator,
                                           ReplayDetail detail = ReplayDetail::kBreakdown);

/// Memory that a CPU gets from the operating system anew in each settled iteration.
[[nodiscard]] Bytes fresh_bytes(const Program& program, const Machine& machine);

/// The two questions alone, by simulation.
struct MemoryVerdict {
  Bytes device_peak;  ///< on a device without limit
  bool fits = false;  ///< on this one
  bool only_by_flushing = false;
  std::string out_of_memory, failure_words;  ///< as in MemoryForecast
};
[[nodiscard]] MemoryVerdict judge_memory(const Program& program, const Machine& machine,
                                         const AllocatorConfig& allocator);

/// A verdict on the program of `job` in a word, the error of forecasts of such jobs considered.
[[nodiscard]] MemoryVerdictWord word_of(const MemoryVerdict& verdict, const Program& program,
                                        const Machine& machine, const AllocatorConfig& allocator,
                                        const Knowledge& knowledge, const Job& job);

/// The last, smaller batch of an epoch: a number, or what the data set leaves over.
struct LastBatch {
  std::int64_t given = 0;    ///< 0: none, unless `samples` say so
  std::int64_t samples = 0;  ///< of the data set: what its batches leave over; 0: `given` counts
};

/// Samples of the last batch when the batch of each of `gpus` is `batch`; 0: none. A
/// DistributedSampler deals each rank the same number of samples, rounded up; a given number that
/// is not smaller than the batch is none.
[[nodiscard]] std::int64_t last_batch_at(const LastBatch& rule, std::int64_t batch, int gpus);

[[nodiscard]] MemoryForecast forecast_memory(const Program& program, const Machine& machine,
                                             const AllocatorConfig& allocator,
                                             const Knowledge& knowledge,
                                             const std::string& error_case);

/// Largest batches of a job (its own `batch` and `last_batch` are ignored).
[[nodiscard]] Result<BatchLimits> forecast_batch_limits(const Step& step, const Job& job,
                                                        const Machine& machine,
                                                        const AllocatorConfig& allocator,
                                                        const Knowledge& knowledge,
                                                        const LastBatch& last_batch = {});

/// The largest workspace that cuDNN could do without, as a share of a peak: what an algorithm other
/// than the assumed one may take goes with it.
[[nodiscard]] double workspace_share(const Program& program, Bytes device_peak);

/// Which measured rows this job resembles: "cnn-fp32-benchmark", "transformer-amp-default", ...,
/// "cpu".
[[nodiscard]] std::string memory_error_case(const Program& program, const Job& job,
                                            const Machine& machine);

}  // namespace stoker
