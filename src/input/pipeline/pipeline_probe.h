#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "base/units.h"
#include "input/loader/loader_simulation.h"
#include "input/probe/loader_profile.h"
#include "input/probe/probe.h"
#include "input/probe/sample_cost.h"

namespace stoker {

/// The measured cost of a user's own Dataset or DataLoader, as `python -m stoker` wrote it.
struct PipelineProbe {
  std::string name;  ///< "train.py:dataset"
  bool iterable = false;
  std::int64_t samples = 0;              ///< 0: unknown
  std::optional<LoaderSettings> loader;  ///< when the function returned a DataLoader
  bool batch_sampler = false, custom_collate = false, shuffle = false;
  Nanos timeout;                   ///< of the loader, for each batch; 0: none
  std::vector<Nanos> cpu;          ///< of a sample, in a worker
  std::vector<Nanos> wait;         ///< likewise: sleeping or waiting for storage
  std::vector<double> file_bytes;  ///< likewise: bytes read
  double in_process_ratio = 1;     ///< CPU a sample in the training process / in a worker
  struct StageCost {
    std::string name;
    Nanos time;
    double share = 0;
  };
  std::vector<StageCost> stages;
  std::string stages_how;  ///< "transforms" or "sampling"
  std::optional<double> size_correlation;
  double within_batch_correlation = 0;
  std::optional<double> repeat_spread;  ///< of passes over the same samples, half of a 90 % band
  /// What neighbours cost where the loader's order is the same in every epoch.
  struct Stretch {
    std::int64_t first = 0;  ///< place in the epoch
    std::vector<Nanos> cpu, wait;
  };
  std::vector<Stretch> order;
  bool whole_epoch = false;  ///< the stretches are all of it
  /// Wall time of samples at random places of the same data, and its standard error; 0: too few.
  Nanos random, random_error;
  double seed_spread = 0;  ///< of a stream's cost from seed to seed, half of what two differ by
  std::vector<StreamSet> streams;  ///< of an IterableDataset, by number of workers
  std::int64_t work_units = 0;     ///< its shards, where it says how many; 0: it does not
  std::optional<Nanos> gil_wait;   ///< of another thread while samples are made, mean
  std::vector<BatchFacts> batch;   ///< by ascending size
  std::string output;              ///< for people
  /// Measured keys of "transport" of data/coefficients/input.json, each with its value.
  std::vector<std::pair<std::string, double>> transport;
  struct Start {
    Nanos fork, spawn, forkserver;  ///< of one worker; 0: not measured
    Nanos warm_up;                  ///< CPU of a new worker's first batch beyond its later ones
    Nanos warm_up_wait;             ///< likewise waiting, without CPU
    Nanos wait;                     ///< of `fork`, without CPU: the worker's init function
    Nanos sampler;                  ///< until the sampler has given its first batch
    bool picklable = true;
    std::string why_not;
    Bytes pickled;
    /// false: pickling was broken off. Bytes and times are then estimated from parts of the data
    /// set (`estimated`), else of what was pickled, at least so much.
    bool pickled_whole = true, estimated = false;
    Nanos pickle, unpickle;  ///< CPU of it; 0: not measured
    Nanos interpreter;  ///< start by the loader's own method without a data set; 0: not measured
    Nanos server;       ///< until a server that forks (forkserver) has PyTorch; 0: not measured
  } start;
  struct Memory {
    Bytes worker_private, worker_peak, object_bytes;
    std::int64_t objects = 0;
    bool copied_on_read = false;
  } memory;
  /// A real DataLoader of one worker before a loop that does nothing, a batch; batch 0: not
  /// measured.
  struct OneWorker {
    std::int64_t batch = 0;
    Nanos interval;              ///< from batch to batch, wall
    Nanos make_cpu, make_wall;   ///< from the first sample to the end of collating, worker's thread
    Nanos worker_cpu, main_cpu;  ///< all threads of the worker; the training thread
    Nanos first_batch;           ///< from before iter(), wall
    Nanos dump, receive, load;   ///< of objects: pickling, in the pipe, unpickling; 0: none large
    Nanos first_make_cpu;        ///< make_cpu of the first batch
    std::int64_t batches = 0;    ///< of the means
    double interval_spread = 0;  ///< of two runs about their mean
  } one_worker;
  ParallelFacts parallel;
  /// CPU a sample with a process a core / with twice as many.
  std::optional<double> crowded_efficiency;
  Contention contention;
  double cores = 1;  ///< usable where it was measured
  std::string cpu_model, python, torch, date;
  Diagnostics findings;
};

/// Samples of the loader's batches: its batch_size or, with a batch sampler, which has none, the
/// size that was measured as its own. nullopt: neither is known.
[[nodiscard]] std::optional<std::int64_t> probed_batch(const PipelineProbe& probe);

[[nodiscard]] bool is_pipeline_probe(std::string_view text);
/// Reads and checks every number. `where` names the file in errors.
[[nodiscard]] Result<PipelineProbe> parse_pipeline_probe(std::string_view text,
                                                         const std::string& where = {});
[[nodiscard]] Result<PipelineProbe> read_pipeline_probe(const std::filesystem::path& path);

/// What the simulation needs of it. What the probe lacks comes from `profile`; the basis says so.
[[nodiscard]] SampleCost sample_cost_from_pipeline(const PipelineProbe& probe,
                                                   const LoaderProfile& profile);

}  // namespace stoker
