#pragma once

#include "cli/request/run_options.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {

/// `predict --by-layer`: prints the sum of the layers beside the step; `resolved` holds the
/// settings.
[[nodiscard]] Result<int> answer_by_layer(const RunOptions& o, const Resolved& resolved);

}  // namespace stoker::cli
