#pragma once

#include <string>
#include <vector>

#include "accuracy/common/bench.h"
#include "accuracy/scaling/workloads.h"

/// Published throughput by number of GPUs, as rows that can be scored from the one of the fewest.
namespace stoker::accuracy {

struct ScalingRow {
  ScalingCase setting;
  Machine machine;
  std::string group;   ///< constants are fitted without the group that is scored
  std::string family;  ///< one job on one machine: its rows differ by the count only
  std::string label;
  double truth_s = 0;
  CollectiveCoefficients collective{};
  FleetStep step{};
};

struct ScalingRows {
  std::vector<ScalingRow> rows;
  std::vector<Unserved> unserved;
};

/// ddp-scaling.csv.
[[nodiscard]] ScalingRows published_rows(const Bench& bench, const ScalingTables& tables,
                                         const Table& table);
/// lambda_throughput.csv.
[[nodiscard]] ScalingRows lambda_rows(const Bench& bench, const ScalingTables& tables,
                                      const Table& table);

/// The collectives' coefficients as they ship for a GPU.
[[nodiscard]] CollectiveCoefficients collective_of(const Bench& bench, const Gpu& gpu);

}  // namespace stoker::accuracy
