#pragma once

#include <string>

#include "cli/run_options.h"

namespace stoker::cli {

/// "64" into `o.batch`, "max" into `o.largest_batch`; empty: neither.
[[nodiscard]] Status parse_batch(const std::string& text, RunOptions& o);

/// The one number of GPUs that --gpus names; 1 when it was left out.
[[nodiscard]] Result<int> gpus_of(const RunOptions& o);

/// The scenario of exactly the settings that were typed, on one GPU (or machine file) of --gpu;
/// `position`: where in --gpu it stands. What was not typed has its documented default, nothing is
/// searched but the largest safe batch, when it was asked for.
[[nodiscard]] Result<Resolved> resolve_exactly(const RunOptions& o, const std::string& gpu,
                                               std::size_t position = 0);

/// How far the batch of this job could grow.
[[nodiscard]] Result<BatchLimits> batch_limits_of(const Resolved& resolved);

}  // namespace stoker::cli
