#pragma once

#include <string>

#include "base/result.h"
#include "cli/request/run_options.h"

namespace stoker::cli {

/// Whether batch, sequence length or precision name several: a table is wanted.
[[nodiscard]] bool wants_settings_table(const RunOptions& o, const std::string& batch);

/// `stoker predict --batch 8,16,32 --seq-len 128,512`: each combination on one kind of GPU.
[[nodiscard]] Result<int> answer_settings_table(const RunOptions& o, const std::string& batch);

}  // namespace stoker::cli
