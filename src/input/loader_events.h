#pragma once

#include <cstdint>
#include <vector>

#include "input/random.h"
#include "input/sample_cost.h"

namespace stoker {

/// The numbers that the event simulation runs on, in seconds; everything above it is units and
/// policy.
struct LoaderModel {
  std::int64_t batches = 0;     ///< a rank loads this many, then stops
  std::int64_t batch = 1;       ///< samples
  std::int64_t last_batch = 1;  ///< samples of the last one
  int workers = 0, prefetch = 2, ranks = 1;
  bool pin = false, in_order = true, forks = true;
  int run_ahead = 1;  ///< steps the loop may be ahead of the GPU; 0: it waits for each
  double cores = 1, slowdown_per_core = 0, oversubscription = 0;
  double disk_per_sample = 0;  ///< seconds of storage time a sample, one reader
  double disk_capacity = 1;    ///< readers that the storage serves at full speed
  std::vector<double> sample;  ///< CPU seconds of one sample, the distribution
  double collate_sample = 0;   ///< CPU seconds a sample, wherever it is collated
  double worker_batch = 0;     ///< CPU seconds a batch in the worker besides samples and collate
  double receive_batch = 0;    ///< CPU seconds to receive a batch in main or pin thread
  double receive_sample = 0;   ///< ... and a sample of it (memory)
  double take_batch = 0;       ///< CPU seconds of main to take a batch from the pin thread
  double fork = 0, startup = 0, reset = 0;
  double step = 0, host_cpu = 0;
  std::uint64_t seed = 1;
};

/// What happened, rank 0's view; times since the start of the epoch.
struct LoaderTrace {
  std::vector<double> yielded;   ///< when batch k reached the training loop
  std::vector<double> step_end;  ///< when step k ended
  /// Integrals at the moment that batch k was yielded, all ranks: core-seconds, worker-seconds of
  /// preparation, disk-seconds; main and pin seconds of rank 0.
  struct Totals {
    double cores = 0, workers = 0, disk = 0, main = 0, pin = 0;
  };
  std::vector<Totals> totals;
};

/// Plays one epoch. Pure and deterministic in the model's seed.
[[nodiscard]] LoaderTrace play_loader(const LoaderModel& model);

/// CPU seconds of `count` samples drawn from `distribution` (mean, deviation and skewness of the
/// sum; drawn one by one when few).
class BatchCost {
 public:
  explicit BatchCost(const std::vector<double>& distribution);
  [[nodiscard]] double draw(std::int64_t count, Random& random) const;

 private:
  const std::vector<double>& distribution_;
  double mean_ = 0, sd_ = 0, skew_ = 0;
};

}  // namespace stoker
