#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::study {

/// What a program said and how it ended.
struct ProgramAnswer {
  int code = 0;  ///< exit code; 128 and its number for a signal
  std::string output, errors;
};

/// Runs a program to its end. Refused: one that cannot be started.
[[nodiscard]] Result<ProgramAnswer> run_program(const std::vector<std::string>& words);

}  // namespace stoker::study
