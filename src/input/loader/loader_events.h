#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/durations.h"
#include "input/loader/batch_draws.h"
#include "input/loader/shared_resource.h"

namespace stoker {

/// Time of a batch: fixed + per_sample * samples.
struct PerBatch {
  Seconds fixed, per_sample;
  [[nodiscard]] Seconds of(std::int64_t samples) const {
    return fixed + per_sample * static_cast<double>(samples);
  }
};

/// The numbers that the event simulation runs on; everything above it is policy.
struct LoaderModel {
  std::int64_t batches = 0;     ///< a rank loads this many, then stops
  std::int64_t stop_after = 0;  ///< batches, where the loop leaves an epoch early; 0: at its end
  std::int64_t batch = 1;       ///< samples
  std::int64_t last_batch = 1;  ///< samples of the last one
  /// Iterable data sets: samples in the stream of each worker of a rank; each ends with its own
  /// short batch. Empty: a sampler deals out `batches`.
  std::vector<std::int64_t> streams;
  /// Likewise what each worker's samples cost, in order, and what its first one costs beyond
  /// that. Empty: all draw from `samples`.
  std::vector<SampleDeck> worker_samples;
  std::vector<Seconds> stream_start;
  int workers = 0, prefetch = 2, ranks = 1;
  bool pin = false, in_order = true, drop_last = false;
  int run_ahead = 1;  ///< steps the loop may be ahead of the GPU; 0: it waits for each

  double cores = 1, slowdown_per_core = 0, oversubscription = 0;
  CpuQuota quota;
  Seconds disk_per_sample;   ///< of storage time, one reader
  double disk_capacity = 1;  ///< readers that the storage serves at full speed

  std::int64_t alike = 1;  ///< samples that stay together when the deck is shuffled anew
  SampleDeck samples;      ///< CPU and waiting of a sample where it is made
  PerBatch collate;        ///< CPU where the batch is made, beside its samples
  PerBatch collate_wait;   ///< likewise without a core
  PerBatch receive;        ///< CPU of the receiver: main, pin thread
  PerBatch pin_copy;       ///< CPU of the copy into pinned memory, without the interpreter's lock
  Seconds take;            ///< CPU of main to take a batch from the pin thread
  /// How long another thread of a worker waits for the interpreter's lock while samples are made,
  /// a turn; and the turns that sending a batch and handing over its tensors need.
  Seconds lock_wait;
  int send_turns = 0, handover_turns = 0;
  /// Objects of a batch that are larger than the pipe: CPU of the worker's feeder thread, which
  /// pickles them, and of either end while they go through. 0: none, and nobody waits for the pipe.
  PerBatch pickle, pipe;
  [[nodiscard]] bool sends_objects() const { return pickle.per_sample + pipe.per_sample > 0_s; }
  /// Share of making a batch in which a worker needs the interpreter's lock, which pickling keeps.
  double lock_share = 0;

  enum class Start : std::uint8_t {
    kRunning,   ///< a later epoch of persistent workers or none: reset only
    kParallel,  ///< processes start up beside each other
    kSerial     ///< each must be up before the next begins (a large data set through a pipe)
  } start = Start::kParallel;
  Seconds fork;          ///< CPU of main a worker
  Seconds server;        ///< until a process that forks them is up, once
  Seconds startup;       ///< CPU of a new worker until it takes its first index
  Seconds startup_wait;  ///< without a core, before that: its init function
  Seconds warm_up;       ///< CPU that a process's first batch costs beyond its later ones
  Seconds warm_up_wait;  ///< likewise without a core
  Seconds sampler;       ///< CPU of main until it knows what to ask for, each epoch
  Seconds reset;         ///< waking persistent workers

  Seconds step, host_cpu;
  double step_fixed = 1;  ///< share of a step that a smaller batch takes as well
  [[nodiscard]] Seconds step_of(std::int64_t count) const {
    if (count >= batch) return step;
    const double share = static_cast<double>(count) / static_cast<double>(batch);
    return std::max(std::min(host_cpu, step), step * (step_fixed + (1 - step_fixed) * share));
  }
  std::uint64_t first_card = 0;  ///< where rank 0 begins in the deck
  bool keep_spans = false;       ///< for a chart
};

/// What somebody did without a break, rank 0 alone; times since the start of the epoch.
struct LoaderSpan {
  enum class Kind : std::uint8_t {
    kPrepare,  ///< a worker makes a batch
    kPin,      ///< the pin-memory thread receives and copies one
    kWait,     ///< the training loop waits for one (without workers: makes it)
    kStep      ///< the device's step
  } kind = Kind::kPrepare;
  int worker = 0;  ///< of kPrepare
  std::int64_t batch = 0;
  Seconds from, to;
};

/// What happened, rank 0's view; times since the start of the epoch.
struct LoaderTrace {
  std::vector<Seconds> yielded;   ///< when batch k reached the training loop
  std::vector<Seconds> step_end;  ///< when step k ended
  /// Batches that lay finished when the loop asked for batch k, the one it got included.
  std::vector<int> ready;
  /// Integrals at the moment that batch k was yielded, all ranks: core-seconds, worker-seconds of
  /// preparation, disk-seconds; main and pin seconds of rank 0.
  struct Totals {
    Seconds cores, workers, disk, main, pin;
  };
  std::vector<Totals> totals;
  /// Most samples that lay in shared memory at once, the loop's own batch included.
  std::int64_t peak_samples = 0;
  std::vector<LoaderSpan> spans;  ///< in the order of their ends, where the model keeps them
};

/// Plays one epoch. Pure and deterministic.
[[nodiscard]] LoaderTrace play_loader(const LoaderModel& model);

}  // namespace stoker
