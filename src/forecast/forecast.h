#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/figure.h"
#include "base/result.h"
#include "device/machine.h"
#include "forecast/energy.h"
#include "forecast/knowledge.h"
#include "forecast/memory_forecast.h"
#include "forecast/run_time.h"
#include "input/loader/loader_simulation.h"
#include "program/job.h"
#include "step/step.h"
#include "timing/common/step_time.h"

namespace stoker {

/// Exactly given settings of a training run.
struct Scenario {
  const Step* step = nullptr;  ///< not owned
  Job job;
  Machine machine;
  LoaderSettings loader;  ///< its batch is the job's
  SampleCost sample;
  AllocatorConfig allocator;
  std::int64_t dataset_samples = 0;     ///< of an epoch; 0: unknown
  std::int64_t epochs = 0;              ///< of a run; 0: nobody asked
  std::int64_t validation_samples = 0;  ///< of one validation; 0: unknown
  /// How a batch in page-locked memory is copied; set_pinning (settings.h) makes the job's of it.
  CopyWay copy = CopyWay::kOverlapped;
  double price_per_gpu_hour = 0;  ///< 0: unknown
  double pace = 1;  ///< a measured step of one GPU over the forecast one; StepTimeOptions::pace
  std::optional<bool> grad_scaler;  ///< as the user said; set_precision (settings.h) decides else
  LastBatch last_batch;             ///< set_batch (settings.h) makes the job's of it
};

/// What holds the whole job back.
enum class Limiter : std::uint8_t {
  kGpuCompute,
  kGpuLaunch,
  kCommunication,
  kInput,
  kCopy,
  kHostOptimizer  ///< the update of offloaded parameters, on the host's processor
};

struct LimiterFact {
  Limiter kind = Limiter::kGpuCompute;
  std::string what;          ///< "JPEG decoding (CPU)", "GPU compute"
  double samples_per_s = 0;  ///< of the whole job, were this the only limit
};

/// The input side, per host.
struct InputForecast {
  LoaderForecast loader;  ///< of one rank
  Figure samples_per_s;   ///< the host could deliver this with these workers, were the GPUs
                          ///< infinitely fast
  InputLimit limit = InputLimit::kStep;  ///< what holds that rate back
  bool known = false;                    ///< false: nothing is known about the data
};

/// What we expect of a scenario; each figure with a band and what it rests on.
struct Forecast {
  Job job;
  LoaderSettings loader;
  std::string gpu_name;
  MemoryForecast memory;
  StepTime time;
  Figure step_ms;  ///< GPU's step alone, input not counted
  /// The parts of the step, on the device's clock: load_ms is what copies of the batch and the turn
  /// of the loop add; the four add up to step_ms.
  Figure load_ms, forward_ms, backward_ms, optimizer_ms;
  Figure host_ms;                ///< what the host needs to issue it
  std::vector<PassTime> passes;  ///< of the epoch's last batch and the validation, if any
  InputForecast input;
  Figure samples_per_s;  ///< whole job
  Figure gpu_busy;       ///< share of time in which a kernel runs, 0..1: what nvidia-smi shows
  Figure mfu;            ///< achieved over data-sheet FLOP/s, 0..1
  Figure epoch_s;        ///< 0 when the data set's size is unknown
  RunTime run;           ///< epochs 0: nobody asked
  Figure epoch_cost;     ///< money, 0 when no price is known
  Figure run_cost;       ///< of `run`, likewise
  Figure gpu_hours_per_epoch;
  double price_per_gpu_hour = 0;         ///< as the scenario has it; 0: unknown
  std::optional<EnergyForecast> energy;  ///< absent when the GPU's TDP is unknown
  LimiterFact limiter, next_limiter;
  /// Device time by module of the step, largest first; what `lower` added (copies, optimizer,
  /// buckets) has none and is left out.
  std::vector<std::pair<ModuleId, Nanos>> module_time;
  Diagnostics diagnostics;
};

/// Joins the models. The only place where memory, timing and input meet.
[[nodiscard]] Result<Forecast> forecast(const Scenario& scenario, const Knowledge& knowledge);

/// The cheap core of it for searches: no bands, no memory. `step_time` is reused over loader
/// settings.
struct Throughput {
  double samples_per_s = 0;  ///< whole job
  LoaderForecast loader;
};
[[nodiscard]] Throughput throughput_of(const Scenario& scenario, const StepTime& step_time);

/// Step time of a scenario's job on its machine.
[[nodiscard]] Result<StepTime> step_time_of(const Scenario& scenario, const Knowledge& knowledge);
/// Step time of a scenario's job that is lowered already.
[[nodiscard]] Result<StepTime> step_time_of(const Scenario& scenario, const Program& program,
                                            const Knowledge& knowledge);

/// Step times on several numbers of GPUs that run this one program, in place of the job's own.
[[nodiscard]] Result<std::vector<StepTime>> step_times_of(const Scenario& scenario,
                                                          std::span<const int> gpus,
                                                          const Program& program,
                                                          const Knowledge& knowledge);

/// The loader of one rank: the scenario's, with the job's batch and data set.
[[nodiscard]] LoaderSettings loader_of(const Scenario& scenario);

/// The training loop that takes its batches.
[[nodiscard]] Consumer consumer_of(const Scenario& scenario, const StepTime& step_time);
/// Share of the step that the short batch at an epoch's end takes as well, by the model at its own
/// size; 1 where no epoch ends so, or where the model takes no such batch.
[[nodiscard]] double fixed_share(const Scenario& scenario, const StepTime& step_time,
                                 const Knowledge& knowledge);

/// What `ranks` processes of a host may use: whole cores, and a fraction of them as the quota of a
/// control group.
[[nodiscard]] HostShare host_share(const Host& host, int ranks);
/// The HostShare that a scenario's loaders have.
[[nodiscard]] HostShare host_share(const Scenario& scenario);

/// The loader of one rank before GPUs that need no time: what the input alone could deliver, and
/// its limit.
[[nodiscard]] LoaderForecast input_ceiling(const Scenario& scenario);

}  // namespace stoker
