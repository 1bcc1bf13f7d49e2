#pragma once

#include <string>

#include "evidence/input/loader_runs.h"
#include "evidence/input/validation.h"

namespace stoker {

/// Forecasts of input pipelines beside real DataLoaders: the answer first, then every point.
[[nodiscard]] std::string validation_text(const InputValidation& validation, const LoaderRuns& runs,
                                          const InputBars& bars = {});
/// Forecasts of input pipelines beside real DataLoaders, as JSON (docs/guide/validating-input.md).
[[nodiscard]] std::string validation_json(const InputValidation& validation, const LoaderRuns& runs,
                                          const std::string& tool_version,
                                          const InputBars& bars = {});

}  // namespace stoker
