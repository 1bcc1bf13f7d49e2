#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
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

[[nodiscard]] std::vector<Binding> input_plan_bindings(InputPlanOptions& o);

/// Whether the thesis's rule is asked for, too.
[[nodiscard]] bool wants_thesis(const InputPlanOptions& o);

/// The loader as it is: the user's own where the function of a pipeline probe returned a
/// DataLoader, else PyTorch's defaults. Says which.
struct LoaderAsItIs {
  LoaderSettings settings;
  bool known = false;
};
[[nodiscard]] LoaderAsItIs loader_as_it_is(const std::optional<PipelineProbe>& pipeline);

/// The plan of the input beside a step that was measured: `stoker plan --step-ms 50 --data X`.
[[nodiscard]] Result<int> answer_input_plan(const RunOptions& run, const InputPlanOptions& own,
                                            std::span<const Binding> bindings);

}  // namespace stoker::cli
