#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/timeline/rhythm_track.h"
#include "diagnosis/timeline/sleep_split.h"
#include "observe/sample/sample.h"

namespace stoker {

/// What a training process does, joined from its own states and those of its workers.
enum class JobState : std::uint8_t {
  kComputes,        ///< on a core: the step itself, launching kernels, receiving batches
  kWaitsForData,    ///< blocked until a worker's batch arrives
  kStartsWorkers,   ///< likewise, while no worker of this epoch has finished a batch
  kWaitsForCore,    ///< ready, others are on the cores
  kThrottled,       ///< ready, the control group's quota is used up
  kSaves,           ///< writes much: a checkpoint
  kReads,           ///< waits for storage itself
  kWaitsForDevice,  ///< blocked in a driver, or on a lock with a GPU at hand
  kWaitsForThread,  ///< blocked on a lock: threads of its own, or of a library
  kTalks,           ///< blocked at a socket or pipe: other ranks, other programs
  kSleeps,          ///< for a time that it chose
  kElsewhere        ///< asleep in what stands in no list, stopped, or hidden from this user
};
inline constexpr std::size_t kJobStates = 12;
[[nodiscard]] std::string_view name_of(JobState state);   ///< "waits_for_data"
[[nodiscard]] std::string_view words_of(JobState state);  ///< "waits for data"

/// Seconds in each state.
struct JobSeconds {
  std::array<double, kJobStates> in{};

  double& operator[](JobState state) { return in[static_cast<std::size_t>(state)]; }
  double operator[](JobState state) const { return in[static_cast<std::size_t>(state)]; }
  [[nodiscard]] double all() const;
  JobSeconds& operator+=(const JobSeconds& other);
};

/// Workers of one training process together, or one of them.
struct WorkerSeconds {
  double cpu = 0;
  double helpers_cpu = 0;  ///< of threads beside the main one
  double queued = 0;
  double idle = 0;     ///< waits to be asked for a batch
  double storage = 0;  ///< waits for a disk or a network file system
  double sleeps = 0;   ///< waits otherwise while it makes a batch: timers, sockets
  double locked = 0;   ///< waits for other threads of its own, or for room in a pipe
  double alive = 0;

  [[nodiscard]] double making() const { return alive - idle; }
  WorkerSeconds& operator+=(const WorkerSeconds& other);
};

/// One stretch of the run, for display and for what comes in bursts.
struct Stretch {
  double from = 0, seconds = 0;
  JobSeconds job;         ///< of all training processes
  WorkerSeconds workers;  ///< of all workers
  double batches = 0;
  double gpu_busy = 0;    ///< share, mean of the job's GPUs; -1: not known
  double cores_used = 0;  ///< by the job, in core-seconds
  double cores_foreign = 0;
  double memory = 0;  ///< bytes of all processes, at its end
  double ready = 0;   ///< batches that lie ready, mean; -1: not known
};

/// What a finished batch took its worker.
struct BatchCost {
  double cpu = 0, wait = 0;  ///< seconds on a core / asleep while making it
};

/// The workers of one training process that started together.
struct Generation {
  double from = 0, to = 0;
  int workers = 0;
  double batches = 0;
  double first_batch = 0;  ///< seconds from its start until the first of them had made one
  bool seen_from_start = false;
};

/// One GPU over the run, as far as its driver tells; means over the time that was told.
struct GpuTimeline {
  std::int64_t index = 0;
  std::string name;
  double seconds = 0;                   ///< with a known utilisation
  double busy = 0;                      ///< share of the time with some kernel running
  double power_seconds = 0, power = 0;  ///< of the limit
  double clock_seconds = 0, clock = 0;  ///< of the highest
  double capped = 0;                    ///< share of the time held by its power limit
  double hot = 0;                       ///< share of the time held by heat or the hardware
  double sm_seconds = 0, sm = 0, tensor = 0, dram = 0;  ///< performance counters, shares
  double shared = 0;          ///< share of the time with a process of somebody else
  double foreign_memory = 0;  ///< bytes, at most
  double job_memory = 0;      ///< bytes in use, at the end
  bool job_seen = false;      ///< a process of the job holds it
};

/// A training process while it has no workers: loading is then in its own time.
struct AloneTimeline {
  double seconds = 0;
  double cpu = 0;     ///< of its main thread on a core
  double queued = 0;  ///< of it waiting for one
  double reads = 0;   ///< of it waiting for storage
  double beside = 0;  ///< of its time on a core, with other threads of the process on one too
  std::array<double, kCodeKinds> code{};  ///< whose code the main thread was found to run, times
};

/// A training process and its workers.
struct RankTimeline {
  std::uint32_t serial = 0;
  std::int64_t pid = 0, rank = -1;
  JobSeconds job;       ///< since its loop began, without steps that warm up
  double from = 0;      ///< seconds into the watch at which that was; 0: it ran already
  double start_up = 0;  ///< seconds until it started its first workers, where that was seen
  ThreadSeconds leader;
  double others_cpu = 0, others_queued = 0;  ///< threads beside the main one, core-seconds
  double busy_threads = 0;                   ///< beside the main one, mean while it computes
  WorkerSeconds workers;
  /// Workers by what they did while the training process waited for data, in worker-seconds.
  WorkerSeconds while_waiting;
  /// Seconds of waiting in which at most one worker was making a batch though there were several.
  double waits_for_one = 0;
  double waiting_with_workers = 0;
  std::vector<WorkerSeconds> each_worker;  ///< of the last generation
  std::vector<Generation> generations;
  int workers_now = 0, workers_most = 0;
  bool pin_thread = false;
  double batches = 0;            ///< asked for while watched
  double loop_batches = 0;       ///< of these within the time of `job`
  double messages_a_batch = 1;   ///< that a worker writes
  double window = 0;             ///< most batches that were asked for and not made
  std::vector<BatchCost> costs;  ///< a bounded sample
  double read_chars = 0, read_bytes = 0, read_calls = 0;  ///< by its workers, or itself without
  /// Calls of read(2) for a usual batch, by the training process beside workers and by these.
  double reads_a_batch = 0, worker_reads_a_batch = 0;
  double data_bytes = 0, data_cached = 0;  ///< of files that it or its workers have open to read
  double written = 0;                      ///< by its main thread
  double saves = 0;                        ///< times that it began to write much
  Told told;                               ///< by the loop itself
  /// Stretches in which it asked for no batch and did not wait for one, far longer than a step.
  double stalled = 0, longest_stall = 0, usual_step = 0;  ///< seconds
  int stalls = 0;
  double judged = 0;        ///< seconds in which stalls could show
  double around_saves = 0;  ///< seconds that checkpoints took, with what prepares and ends them
  bool warm = false;        ///< steps that warm up, and the first start of workers, are left out
  std::optional<Rhythm> rhythm;  ///< in what its main thread does: a step, as a rule
  AloneTimeline alone;
};

/// What a watch has seen so far. Takes samples one by one, from a sampler or a recording, and keeps
/// a bounded amount: the stretches grow longer as the run does.
class JobTimeline {
 public:
  JobTimeline();
  ~JobTimeline();
  JobTimeline(JobTimeline&&) noexcept;
  JobTimeline& operator=(JobTimeline&&) noexcept;

  void set_facts(const WatchFacts& facts);
  void learn(const std::vector<ProcessFacts>& processes);
  void add(const Sample& sample);

  [[nodiscard]] const WatchFacts& facts() const;
  [[nodiscard]] const std::vector<ProcessFacts>& processes() const;
  [[nodiscard]] double seconds() const;
  [[nodiscard]] std::vector<RankTimeline> ranks() const;
  [[nodiscard]] const std::vector<Stretch>& stretches() const;
  [[nodiscard]] const HostSample& first_host() const;
  [[nodiscard]] const HostSample& last_host() const;
  /// The most that /dev/shm held, as a share of what it can hold; 0: not told.
  [[nodiscard]] double shared_memory_full() const;
  /// Seconds between those two.
  [[nodiscard]] double host_seconds() const;
  /// CPU time of the job in that time, core-seconds.
  [[nodiscard]] double job_cpu() const;
  /// The last sample, with what processes hold.
  [[nodiscard]] const Sample& last() const;
  [[nodiscard]] const std::vector<GpuTimeline>& gpus() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace stoker
