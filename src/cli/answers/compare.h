#pragma once

#include <string>

#include "cli/request/run_options.h"
#include "scenario/request/request.h"

namespace stoker::cli {

/// Several GPUs of --gpu side by side, each in exactly these settings; `objective` as it was typed,
/// empty: throughput. Prints the table. Exit code 1: it fits none of them.
[[nodiscard]] Result<int> compare(const RunOptions& o, const std::optional<BatchRequest>& batch,
                                  const std::string& objective);

}  // namespace stoker::cli
