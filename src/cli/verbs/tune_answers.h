#pragma once

#include "base/result.h"
#include "cli/verbs/tune_arguments.h"

namespace stoker::cli {

/// `stoker tune --lr-test`: runs the command once a seed while it raises its learning rate, or
/// reads runs of a file.
[[nodiscard]] Result<int> lr_test(const TuneArguments& a);

/// `stoker tune --noise-scale N --model M --gpu G`: forecasts, and what they are worth for
/// learning.
[[nodiscard]] Result<int> goodput_answer(const TuneArguments& a);

}  // namespace stoker::cli
