#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments/arguments.h"
#include "cli/request/run_options.h"
#include "input/loader/loader_simulation.h"
#include "input/pipeline/pipeline_probe.h"

namespace stoker::cli {

/// What the user typed about a plan of the input alone, without a model.
struct InputPlanOptions {
  std::optional<double> step_ms, cores;
  bool blocking = false;
  std::string method;
};

/// Under their headings.
[[nodiscard]] std::vector<Flag> input_plan_flags(InputPlanOptions& o);

/// Whether `--method` asks for the thesis's rule; refuses a name that is none.
[[nodiscard]] Result<bool> wants_thesis(const std::string& method);

/// The loader as it is: the user's own where the function of a pipeline probe returned a
/// DataLoader, else PyTorch's defaults. Says which.
struct LoaderAsItIs {
  LoaderSettings settings;
  bool known = false;
};
[[nodiscard]] LoaderAsItIs loader_as_it_is(const std::optional<PipelineProbe>& pipeline);

/// The plan of the input beside a step that was measured: `stoker plan --step-ms 50 --data X`.
[[nodiscard]] Result<int> answer_input_plan(const RunOptions& run, const InputPlanOptions& own,
                                            const std::vector<Flag>& flags);

}  // namespace stoker::cli
