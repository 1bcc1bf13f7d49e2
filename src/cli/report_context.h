#pragma once

#include <string>

#include "cli/run_options.h"

namespace stoker::cli {

/// What the figures must be judged in: what they rest on, what was assumed and left out.
void fill_context(const RunOptions& o, Resolved& r);

/// Of an answer that no model was needed for.
[[nodiscard]] ReportContext bare_context(const Machine& machine);

/// "resnet50 | train, SGD momentum, 224 px | V100-SXM2-16GB | DDP, eager, amp-fp16"
[[nodiscard]] std::string model_line(const Resolved& resolved, const Job& job);

/// What of the job differs from the plainest loop and is not in the model line, a phrase each.
[[nodiscard]] std::vector<std::string> unusual_settings(const Job& job);

}  // namespace stoker::cli
