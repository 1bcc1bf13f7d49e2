#pragma once

#include "cli/run_options.h"

namespace stoker::cli {

/// `predict --by-layer`: prints the sum of the layers beside the step; `resolved` holds the settings.
[[nodiscard]] Result<int> answer_by_layer(const RunOptions& o, Resolved& resolved);

}  // namespace stoker::cli
