#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/catalogue/gpu_catalogue.h"
#include "device/machine.h"
#include "timing/common/coefficients.h"

/// Published training jobs of which only throughput is known, and what their scaling follows from:
/// scaling_workloads.json in the folder above.
namespace stoker::accuracy {

struct Workload {
  std::vector<std::string> models;  ///< names that tables use
  double parameters = 0;
  bool half_gradients = false;  ///< reduced in FP16 under mixed precision
  bool after_backward = false;  ///< reduced at once when the backward has ended
  bool uneven = false;          ///< a batch's work depends on its samples
  double units_per_sample = 1;  ///< tokens, frames ... where a table counts those
  double epoch_samples = 0;     ///< where each epoch starts the loader anew; 0: not known to
  double batch = 0;             ///< per GPU, where a table leaves it out
  int accumulate = 1;           ///< micro-batches of the smallest count of a strong-scaling row
};

/// A computer that tables name: its GPUs, and what joins them.
struct NamedSystem {
  std::string name, gpu, link;
  int gpus_per_node = 8;
  double network = 0;  ///< bytes/s of a node
};

/// What a fleet loses beyond its collectives.
struct FleetConstants {
  double straggler_us = 0;      ///< CollectiveCoefficients::straggler_wait
  double straggler_growth = 0;  ///< CollectiveCoefficients::straggler_growth
  double uneven = 0;            ///< standard deviation of one sample's work, relative to its mean
  double epoch_start_s = 0;     ///< until the loader delivers again
  double own_cost = 0;          ///< DDP's copies and hooks on one GPU, share of the step
};

struct ScalingTables {
  std::vector<Workload> workloads;
  std::vector<NamedSystem> systems;
  FleetConstants constants;

  [[nodiscard]] const Workload* find(std::string_view model) const;
  /// By the longest name that `words` contain; with the number of nodes' network if `words` say it
  /// ("4x100Gb"). A GPU of the catalogue serves as well.
  [[nodiscard]] Result<Machine> machine(std::string_view words, const GpuCatalogue& gpus) const;
};

[[nodiscard]] Result<ScalingTables> load_scaling_tables();

/// One row: a job on `gpus`, known on `base_gpus`.
struct ScalingCase {
  const Workload* workload = nullptr;
  bool half = false;    ///< mixed precision
  bool strong = false;  ///< the global batch stays
  double batch = 0;     ///< samples per GPU and micro-batch
  int accumulate = 1;   ///< on base_gpus, in strong scaling
  int base_gpus = 1, gpus = 1;
  double base_step_s = 0;  ///< measured on base_gpus
};

/// A row's step by collectives alone: what does not depend on FleetConstants.
struct FleetStep {
  double alone_s = 0;  ///< on base_gpus, were there no collectives
  double fleet_s = 0;  ///< on `gpus`, no rank late and no epoch ending
};

/// machine.gpu_count is the GPUs of a full node.
[[nodiscard]] FleetStep by_collectives(const ScalingCase& row, const Machine& machine,
                                       const CollectiveCoefficients& collective);

/// Seconds of a step on row.gpus.
[[nodiscard]] double scaled_step(const ScalingCase& row, const FleetStep& step,
                                 const FleetConstants& constants,
                                 const CollectiveCoefficients& collective);

}  // namespace stoker::accuracy
