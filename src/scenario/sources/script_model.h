#pragma once

#include "base/result.h"
#include "device/machine.h"
#include "scenario/request/request.h"
#include "scenario/sources/model_source.h"
#include "scenario/sources/script_findings.h"
#include "scenario/sources/tools.h"

namespace stoker {

/// Whether a model's name is a training script as it is: FILE.py without a function, or a shell
/// script, which is refused with the line that starts Python.
[[nodiscard]] bool is_script(const std::string& model);

struct ScriptModel {
  LoadedModel model;
  ScriptFindings findings;
};

/// The step of a script, captured on the fly as the script runs with its arguments, and remembered
/// as long as its files are as they were. Without precisions in the request its own counts; fp32
/// serves tf32, too.
[[nodiscard]] Result<ScriptModel> load_script(const RunRequest& request, const Machine& machine,
                                              const ScenarioTools& tools);

/// The model with what its step file says of the script that it was captured from: `stoker capture`
/// and then a forecast of the file answer as a forecast of the script does. Any other model has no
/// findings.
[[nodiscard]] Result<ScriptModel> with_its_script(LoadedModel model, const RunRequest& request);

}  // namespace stoker
