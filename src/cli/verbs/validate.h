#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {

/// What the user typed.
struct ValidateOptions {
  bool input = false, quick = false, json = false, learn = false, log = false, compile = false;
  std::string what, budget, output, html;
  // of training steps
  std::string machine, device, batches, threads, precision, optimizer, model, data;
  std::vector<std::string> script_arguments;  ///< what follows -- where `what` is FILE.py
};

/// Forecasts of the input pipeline beside real DataLoaders.
[[nodiscard]] Result<int> validate_input_pipeline(const ValidateOptions& o,
                                                  std::span<const Binding> bindings);
/// Forecasts of training steps beside real ones.
[[nodiscard]] Result<int> validate_training_steps(const ValidateOptions& o,
                                                  std::span<const Binding> bindings);
/// What was forecast and measured before.
[[nodiscard]] Result<int> show_accuracy_log(const ValidateOptions& o);

}  // namespace stoker::cli
