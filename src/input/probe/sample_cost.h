#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/figure.h"
#include "base/units.h"
#include "input/probe/loader_profile.h"
#include "input/probe/probe.h"

namespace stoker {

/// What collating a batch of some size costs, and what comes out
/// (docs/reference/pipeline-probe-file.md).
struct BatchFacts {
  std::int64_t batch = 1;  ///< asked for
  double samples = 1;      ///< mean found
  Bytes bytes;             ///< of all tensors, padding included
  double tensors = 1;      ///< that travel by file descriptor
  Nanos collate_shared;    ///< CPU, as a worker does
  Nanos collate_private;   ///< CPU, as the training process does
  Bytes pickled;           ///< through the pipe: numpy arrays, strings, lists
  Nanos pickle, unpickle;  ///< CPU of it on either side, beside the pipe; 0: not measured
  Nanos pipe{};            ///< until a message of that size is through the pipe; 0: not measured
  /// The part of collate_shared that moves to shared memory what the collate function left in
  /// private memory: work of the thread that sends.
  Nanos share{};
  Nanos collate_wait{};  ///< of collating, without CPU: sleeping, storage, a network
};

/// The facts of a batch of `batch` samples: along the line through the two nearest measured sizes,
/// in proportion below the smallest and when only one is known. `facts` holds at least one, by
/// ascending size.
[[nodiscard]] BatchFacts batch_facts_at(const std::vector<BatchFacts>& facts, double batch);

struct SampleCost;
/// Whether collating a batch takes longer than making its samples, by far: more of either is a
/// question of how samples are put together.
[[nodiscard]] bool collates_longer(const SampleCost& cost, std::int64_t batch);

/// Half-width of the 90 % band of the CPU time of samples from a probe, relative. Set by the rows
/// of data/measured/input (docs/models/input.md, section 4): 93 % of the epochs of final.json lie
/// within, 76 % of second.json's. Most of it is the machine: cores that a neighbour slows without
/// any clock showing it.
inline constexpr double kProbeError = 0.225;
/// What a probe adds to it that measured caches which others were using too: an assumption.
inline constexpr double kDisturbedProbe = 0.05;

/// What one worker of an IterableDataset gets: its own stream, in the order in which it reads it.
struct StreamCost {
  std::vector<Nanos> cpu, wait;  ///< of a sample, element by element
  std::int64_t samples = -1;     ///< until it ends; < 0: unknown
  Nanos start;                   ///< its first sample beyond the others: a buffer that fills
};

/// The streams of all workers, as many as `workers` read beside each other.
struct StreamSet {
  bool same = false;  ///< every worker gives all samples: nothing shares them out
  std::vector<StreamCost> workers;
};

/// What one sample of the data set costs the user's loader, wherever that knowledge comes from.
struct SampleCost {
  /// False: nothing is known about the data; the simulation then reports that input does not limit
  /// and says so in its basis.
  bool known = false;
  std::vector<Nanos> cpu;  ///< CPU time of one sample; one element = every sample the same
  Bytes output;            ///< bytes of one sample in the batch, all tensors together
  int tensors = 2;         ///< tensors a batch (image and label)
  double read_bytes = 0;   ///< mean bytes read a sample; 0: data already in memory
  /// Samples lie one after another in long files (shards, lines of text): no seek for each.
  bool sequential = false;
  std::int64_t dataset_samples = 0;  ///< 0: unknown
  Bytes dataset_bytes;
  /// CPU time a sample with all cores busy / alone, minus 1, a further busy core.
  double slowdown_per_core = 0;
  double cold_seek_ms = 0;    ///< one uncached read, without its bytes
  double cold_bandwidth = 0;  ///< bytes/s of uncached reads; 0: unknown
  double cold_speedup = 0;    ///< what several readers at once gain over one; 0: unknown
  /// Times that a read takes what is said of its storage: seeking, bandwidth, reads a second.
  double storage_pace = 1;
  /// Time that a sample waits without CPU (sleeping, storage, network), beside `cpu` element by
  /// element; empty: none.
  std::vector<Nanos> wait;
  /// CPU time of a sample in the training process / in a worker.
  double in_process_ratio = 1;
  /// Likeness of the samples of a batch: 0 independent, 1 all the same (length bucketing).
  double within_batch = 0;
  /// Measured batches by ascending size; they replace `output`, `tensors` and the transport's
  /// coefficients of collating. Empty: every sample the same size.
  std::vector<BatchFacts> batches;
  bool iterable = false;  ///< an IterableDataset: each worker reads its own stream
  /// `cpu` and `wait` are in the order in which the loader asks for them in every epoch: stretches
  /// of neighbours of these lengths. Empty: any order.
  std::vector<std::int64_t> stretches;
  bool whole_epoch = false;  ///< the stretches are all of the epoch
  /// Streams by number of workers, as they were measured. Empty: all workers' are alike.
  std::vector<StreamSet> streams;
  /// Shards or files, each of which one worker reads alone; 0: samples are handed out singly.
  std::int64_t work_units = 0;
  /// From Process.start() until the worker takes its first index, wall, on an idle machine; 0: not
  /// measured.
  struct Start {
    Nanos fork, spawn, forkserver;
    Bytes pickled;           ///< of the data set, for spawn and forkserver; at least
    Nanos pickle, unpickle;  ///< CPU of it; 0: not measured
    Nanos interpreter{};     ///< a new interpreter with PyTorch, no data set; 0: not measured
    Band band{};             ///< relative error of starts by another way than fork
    Nanos server{};          ///< forkserver: until its server is up, once a run; 0: not measured
    Nanos served{};          ///< ... and a worker of it without a data set; 0: not measured
    Nanos wait{};            ///< of a worker's start, without CPU: what its init function waits for
    Nanos sampler{};         ///< until the sampler has given its first batch, each epoch
  } start;
  /// How long another thread of a worker waits for the interpreter's lock while samples are made.
  Nanos lock_wait;
  /// What a busy worker loses a batch to its other threads, beyond the transport's coefficients;
  /// negative where those say too much.
  Nanos worker_extra;
  /// What receiving a batch takes in the training process beyond the transport's coefficients;
  /// negative where those say too much.
  Nanos main_extra;
  Nanos main_unsure{};  ///< of it, either way: with more workers it may be theirs
  /// CPU time that the first batch of a new worker costs beyond its later ones.
  Nanos warm_up;
  Nanos warm_up_wait{};  ///< likewise without CPU: connections, files that are opened
  /// Python objects of the data set that every worker copies by touching their reference counts.
  Bytes copied_on_read;
  TransportCoefficients transport;
  Band band;       ///< relative error of the CPU time a sample
  Band wait_band;  ///< likewise of the time that a sample waits
  std::string basis;

  [[nodiscard]] Nanos mean_cpu() const;
  [[nodiscard]] Nanos mean_wait() const;
  /// Bytes of all tensors of a batch.
  [[nodiscard]] double batch_bytes(std::int64_t batch) const;
};

struct OutputShape {
  Bytes bytes_per_sample{};  ///< 0: 3 * image_size^2 * 4 (float) + 8 (label)
  int tensors = 2;
};

/// A probe of images, seen through the costs of the Python loader.
[[nodiscard]] SampleCost sample_cost_from_probe(const Probe& probe, const LoaderProfile& profile,
                                                OutputShape output = {});

/// Numbers that the user gives (`--sample-cost 0.2ms`): the same for every sample.
[[nodiscard]] SampleCost sample_cost_given(Nanos cpu, OutputShape output,
                                           const LoaderProfile& profile);

/// The samples with CPU times `factor` times as long.
[[nodiscard]] SampleCost with_cpu_times(SampleCost cost, double factor);

/// One end of the band: CPU times `factor` times as long, and waiting at the same end of its own
/// band.
[[nodiscard]] SampleCost at_band_end(SampleCost cost, double factor);

/// Nothing known: never limits.
[[nodiscard]] SampleCost sample_cost_unknown(OutputShape output);

}  // namespace stoker
