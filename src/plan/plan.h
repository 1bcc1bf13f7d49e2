#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "forecast/forecast.h"
#include "plan/input_plan.h"

namespace stoker {

enum class Objective : std::uint8_t {
  kThroughput,  ///< most samples a second
  kCost,        ///< least GPU-hours (or money) an epoch
  kEpoch,       ///< shortest epoch, its start included
  kEnergy       ///< least electricity an epoch, by the estimate of forecast/energy.h
};
[[nodiscard]] std::string_view name_of(Objective objective);
[[nodiscard]] Result<Objective> parse_objective(std::string_view name);

/// What pinned memory gains or costs is worth a word from this share on; below it, it is pinned.
inline constexpr double kPinningTells = 0.005;

/// A captured step and the precision that it would run in.
struct PrecisionChoice {
  Precision precision = Precision::kFp32;
  const Step* step = nullptr;  ///< not owned
};

/// What the search may not exceed. GPU memory, DRAM, /dev/shm and cores come from the machine.
struct PlanLimits {
  std::int64_t max_global_batch = 0;  ///< the user's ceiling for convergence; 0: none given
  double max_epoch_cost = 0;          ///< money an epoch; 0: none. Needs a price and a data set
  double max_run_cost = 0;  ///< money of all epochs; 0: none. Needs a number of epochs too
  int max_workers = 0;      ///< per GPU; 0: as many as the host's cores allow
};

struct PlanRequest {
  std::vector<PrecisionChoice> choices;  ///< in order of preference among equals
  Scenario base;  ///< machine, sample, optimizer, dimensions; batch, gpus, loader are searched
  std::vector<int> gpu_counts{1};
  Objective objective = Objective::kThroughput;
  PlanLimits limits;
  std::string sample_word = "sample";  ///< in the sentences of the advice
  std::optional<std::int64_t> batch;   ///< fixed by the user
  std::optional<int> workers;
  std::optional<int> prefetch;
  std::optional<bool> pin;
  bool persistent = true;                   ///< workers live on between epochs
  const Probe* folder = nullptr;            ///< what the sample's cost was measured from; not owned
  const PipelineProbe* pipeline = nullptr;  ///< likewise
  HostLimits limits_here;     ///< of this computer, when it is the host that is planned for
  LoaderSettings loader_now;  ///< PyTorch's defaults, or the user's own loader
  bool loader_known = false;  ///< it is the user's own
  bool thesis = false;        ///< the thesis's rule beside ours
};

/// The best settings of one number of GPUs.
struct PlanRow {
  Forecast forecast;
  BatchLimits batch_limits;
};

/// One thing to do next, with what it is worth.
struct Advice {
  std::string what;  ///< a sentence
  double gain = 0;   ///< relative change of throughput, 0.25 = +25 %
  double price = 0;  ///< relative change of GPU-hours an epoch
};

/// Why the recommended batch is not simply the largest.
struct BatchReason {
  std::int64_t largest_safe = 0;     ///< 0: none
  std::int64_t largest_running = 0;  ///< by the forecast, its error left aside
  std::int64_t first_failing = 0;
  double share_of_best = 1;          ///< speed at the chosen batch over the best speed at any batch
  std::int64_t best_batch = 0;       ///< where that best speed is
  std::int64_t low_in_training = 0;  ///< see BatchLimits
  bool ceiling = false;              ///< the user's max_global_batch decided
  /// Samples of the data set, where it is too small for larger batches that would run; else 0.
  std::int64_t data_samples = 0;
  bool fixed = false;  ///< the user gave the batch
  /// The batch that the GPU alone would have had, where the host's memory leaves it too few
  /// workers; else 0.
  std::int64_t too_large_for_workers = 0;
};

/// The chosen job with its runners-up and reasons.
struct Plan {
  PlanRow best;
  std::vector<PlanRow> by_gpus;       ///< best settings for each count, in order
  std::vector<int> uneven_counts;     ///< GPUs that the nodes cannot share evenly: left out
  std::vector<PlanRow> by_precision;  ///< the chosen count in the other precisions
  BatchReason batch_reason;
  std::vector<Advice> next;
  std::optional<InputPlan> input;  ///< of the best settings, when something is known of the data
  double pin_gain = 0;             ///< relative, pinned and non_blocking against pageable
  std::int64_t settings_considered = 0;
};

/// Searches the settings under the limits. Fails with a sentence that says what stands in the way
/// when nothing satisfies them (a GPU too small for batch 1, a budget below the cheapest epoch).
[[nodiscard]] Result<Plan> make_plan(const PlanRequest& request, const Knowledge& knowledge);

}  // namespace stoker
