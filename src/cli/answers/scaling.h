#pragma once

#include "cli/request/run_options.h"
#include "scenario/request/request.h"

namespace stoker::cli {

/// Settings of `predict` that ask for one job on several numbers of GPUs, or say how these are
/// connected.
struct ScalingOptions {
  std::optional<std::int64_t> gpus_per_node;
  std::optional<double> step_ms;
  std::string network;
  bool strong = false;
};

[[nodiscard]] std::vector<Binding> scaling_bindings(ScalingOptions& o);

/// Whether the answer is a table over numbers of GPUs: --gpus names several, or --strong.
[[nodiscard]] bool wants_scaling(const RunOptions& run, const ScalingOptions& o);

/// Refuses what would have no effect on one number of GPUs, and returns the network's bytes/s (0:
/// not given).
[[nodiscard]] Result<double> network_of_one(const RunOptions& run, const ScalingOptions& o);

[[nodiscard]] Result<int> answer_scaling(const RunOptions& run,
                                         const std::optional<BatchRequest>& batch,
                                         const ScalingOptions& o);

/// "100G" (gigabits a second), "4x100G" (cards of a node), "hdr", "2xndr" -> bytes/s of a node.
[[nodiscard]] Result<double> parse_network(const std::string& text);

/// "1..64" -> 1, 2, 4 ... 64; lists are taken as they stand.
[[nodiscard]] Result<std::vector<int>> scaling_counts(const std::string& text);

}  // namespace stoker::cli
