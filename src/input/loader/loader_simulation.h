#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"
#include "input/loader/shared_resource.h"
#include "input/probe/sample_cost.h"
#include "program/copy_way.h"

namespace stoker {

/// How worker processes come to be. The others than fork start an interpreter that imports PyTorch
/// and unpickles the data set.
enum class StartMethod : std::uint8_t { kFork, kForkserver, kSpawn };

/// "fork", "forkserver", "spawn": as multiprocessing calls them.
[[nodiscard]] std::string_view start_method_name(StartMethod method);
[[nodiscard]] std::optional<StartMethod> start_method_named(std::string_view name);

/// The arguments of torch.utils.data.DataLoader, with its defaults where it has one.
struct LoaderSettings {
  std::int64_t batch = 1;  ///< per GPU
  int workers = 0;         ///< per GPU; 0: the training process loads
  int prefetch = 2;        ///< batches a worker ahead; meaningless without workers
  bool pin = true;
  bool persistent = false;
  bool drop_last = false;
  bool in_order = true;
  StartMethod start_method = StartMethod::kFork;
  std::int64_t dataset_samples = 0;  ///< of the whole job; 0: as SampleCost says, else long
  /// Batches after which the loop leaves the epoch; 0: it goes to the end.
  std::int64_t stop_after = 0;
  std::uint64_t seed = 1;
};

/// What the loaders of one host may use.
struct HostShare {
  /// Usable by the job. A fraction, where a quota is known as no more than that; better the whole
  /// cores here and the quota beside them.
  double cores = 1;
  CpuQuota quota{};                ///< of the control group
  double foreign_cores = 0;        ///< of `cores`, kept busy by other jobs
  int ranks = 1;                   ///< processes (GPUs) on this host that each run a loader
  int all_ranks = 0;               ///< of the whole job, which share an epoch's samples; 0: `ranks`
  double relative_core_speed = 1;  ///< against the machine of the probe
  Bytes memory{};                  ///< DRAM that can cache files; 0: everything is cached
  double disk_bandwidth = 0;       ///< bytes/s; 0: the probe's cold reads, else unlimited
  double disk_iops = 0;            ///< 0: likewise
  double pin_bandwidth = 4e9;      ///< bytes/s of the copy into pinned memory, one thread
};

/// How the training loop takes batches.
enum class Consumption : std::uint8_t {
  /// The loop runs one step ahead of the GPU, the usual case: fetching overlaps the step.
  kOverlapped,
  /// The loop waits for each step before it fetches the next batch (a loss.item() every step, a CPU
  /// step).
  kBlocking
};

/// Copying batches to the device, where the step's time does not hold it already.
struct DeviceCopy {
  double bandwidth = 0;  ///< bytes/s from such memory; 0: within the step
  CopyWay way = CopyWay::kBlocking;
};

struct Consumer {
  Nanos step{};      ///< of the GPU (or CPU) per batch
  Nanos host_cpu{};  ///< CPU time of the training thread a step (launching kernels); <= step
  Consumption consumption = Consumption::kOverlapped;
  DeviceCopy copy{};
  /// Share of a step that a smaller batch, an epoch's last, takes all the same: 0 where steps go
  /// with their samples, 1 where the host limits or the loop sleeps.
  double fixed = 1;
};

/// What holds the batches back. kStep: nothing, the step is the limit.
enum class InputLimit : std::uint8_t {
  kStep,
  kCores,
  kWorkers,
  kMainThread,
  kPinThread,
  kDisk,
  kInProcess,
  kJitter
};
/// "main_thread", as machines read it.
[[nodiscard]] std::string_view name_of(InputLimit limit);
/// What limits the loader, in words.
[[nodiscard]] std::string_view input_limit_text(InputLimit limit);

/// Batches that lie ready when the loop asks for one, in the steady state: 0 means that it waits.
struct QueueDepth {
  double mean = 0, p10 = 0, median = 0, p90 = 0;
};

struct LoaderForecast {
  double samples_per_s = 0;  ///< steady state, one rank
  Nanos interval;            ///< steady time from batch to batch
  Nanos wait;                ///< of the consumer a step, steady
  Nanos first_batch;         ///< from the start of an epoch to batch 0, first epoch
  Nanos epoch_start;         ///< likewise, later epochs
  Nanos started;             ///< of first_batch: until workers that are not forked are up
  Band started_band;         ///< relative
  Nanos epoch;  ///< whole epoch (a later one), first batch and shutdown included; 0: unknown size
  Nanos shutdown;                  ///< of it: joining workers that are not persistent
  std::int64_t batches = 0;        ///< of an epoch, one rank
  std::int64_t epoch_samples = 0;  ///< that reach the loop in them
  double worker_utilization = 0;   ///< share of the time that workers prepare batches
  double cores_used = 0;           ///< mean, all ranks
  /// of the training thread or pin thread by loading, whichever is higher
  double main_utilization = 0;
  double disk_utilization = 0;
  double cached_share = 1;  ///< of reads served by the page cache
  QueueDepth queue;
  Bytes shared_memory;                ///< /dev/shm, all ranks, at most
  Bytes shared_memory_used;           ///< likewise, the most that this loop lets pile up
  Bytes pinned_memory;                ///< all ranks, rounded as PyTorch's pinned allocator does
  Bytes worker_memory;                ///< private, all workers of all ranks; an estimate
  Bytes copied_memory;                ///< of it: copies on read, reached after some epochs
  std::int64_t file_descriptors = 0;  ///< of one training process
  InputLimit limit = InputLimit::kStep;
  std::string basis;
};

/// Simulates the DataLoader of PyTorch 2.x batch by batch (docs/models/input.md). Pure and
/// deterministic.
[[nodiscard]] LoaderForecast simulate_loader(const LoaderSettings& settings, const SampleCost& cost,
                                             const HostShare& host, const Consumer& consumer);

/// Whether anything is known of what reading from storage takes: of the host or of the probe.
[[nodiscard]] inline bool knows_storage(const SampleCost& cost, const HostShare& host) {
  return host.disk_bandwidth > 0 || (host.disk_iops > 0 && !cost.sequential) ||
         cost.cold_seek_ms > 0 || cost.cold_bandwidth > 0;
}

/// The host before it has read any file: what the first epoch meets.
[[nodiscard]] inline HostShare with_nothing_cached(HostShare host) {
  host.memory = Bytes(1);
  return host;
}

/// Samples a second of one rank over an epoch, its start included; the steady rate where the size
/// of an epoch is unknown.
[[nodiscard]] inline double epoch_rate(const LoaderForecast& forecast) {
  if (forecast.epoch.count() <= 0 || forecast.epoch_samples <= 0) return forecast.samples_per_s;
  return static_cast<double>(forecast.epoch_samples) / seconds(forecast.epoch);
}

/// A consumer that needs `step` on the GPU and no CPU.
[[nodiscard]] inline LoaderForecast simulate_loader(const LoaderSettings& settings,
                                                    const SampleCost& cost, const HostShare& host,
                                                    Nanos step) {
  return simulate_loader(settings, cost, host, Consumer{.step = step, .host_cpu = Nanos{}});
}

}  // namespace stoker
