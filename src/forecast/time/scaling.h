#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "forecast/forecast.h"

namespace stoker {

/// From how many GPUs a job stops gaining: the same job on rising numbers of GPUs.
struct ScalingRequest {
  std::vector<int> counts;  ///< of GPUs, rising
  int gpus_per_node = 8;    ///< a node that is full begins the next
  /// false: every GPU keeps its batch, so that the global batch grows (weak scaling). true: the
  /// global batch of one GPU, batch x accumulate, is shared out: first its micro-batches, then the
  /// batch.
  bool strong = false;
  double step_ms = 0;         ///< measured step of one GPU; 0: the forecast's
  bool loader_given = false;  ///< the loader's workers are the user's, not cores / GPUs
};

/// One number of GPUs.
struct ScalingPoint {
  int gpus = 1, nodes = 1;
  std::int64_t batch = 1;  ///< per GPU and micro-batch
  int accumulate = 1;
  std::string impossible;  ///< why this count cannot run the job; empty: it can
  bool fits = true;        ///< in the GPU's memory
  MemoryVerdictWord verdict = MemoryVerdictWord::kFits;
  Figure step_ms;         ///< of one optimizer step, input not counted
  Figure samples_per_s;   ///< of the whole job
  double efficiency = 0;  ///< samples/s a GPU, over those of one GPU alone
  double marginal =
      0;  ///< samples/s that each GPU beyond the count before adds, over those of one alone
  double communication_ms = 0;          ///< sum of the collectives
  double exposed_communication_ms = 0;  ///< what the GPU waits for them, and for the slowest rank
  std::string loss;                     ///< what costs most against perfect scaling
};

/// Another way of sharing the job between the most GPUs.
struct ScalingAlternative {
  Parallel parallel = Parallel::kDdp;
  Figure step_ms;
  bool fits = true;
};

/// A further GPU pays while it adds at least this share of what one alone does.
inline constexpr double kLeastMarginal = 0.5;

struct Scaling {
  bool strong = false;
  std::int64_t global_batch = 0;  ///< of the one-GPU job; in weak scaling each GPU adds as much
  double pace = 1;                ///< measured over forecast step of one GPU
  Figure one_gpu_step_ms, one_gpu_samples_per_s;
  std::vector<ScalingPoint> points;
  int pays_up_to = 1;  ///< the last count before `stops_at`
  int stops_at = 0;    ///< first count whose GPUs no longer pay; 0: all pay
  std::string why;     ///< what costs most there
  std::vector<ScalingAlternative> alternatives;  ///< at the most GPUs that pay, fastest first
  std::string basis;                             ///< of collectives and step
  std::vector<std::string> assumed;
};

/// `scenario` is the job of one GPU; its number of GPUs and nodes is not read.
[[nodiscard]] Result<Scaling> forecast_scaling(const Scenario& scenario,
                                               const ScalingRequest& request,
                                               const Knowledge& knowledge);

/// How a global batch is shared out: micro-batches first, then the batch. `batch` x `accumulate` x
/// gpus may exceed it where it does not divide; the slowest GPU then has that much.
struct Share {
  std::int64_t batch = 1;
  int accumulate = 1;
};
[[nodiscard]] Share share_of(std::int64_t batch, int accumulate, int gpus);

}  // namespace stoker
