#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// Why the parser refused the verb's words, in a sentence with the cure. `message` is the parser's
/// own.
[[nodiscard]] Error refusal_of(const std::string& message, const Command& command,
                               const std::vector<std::string>& words);

}  // namespace stoker::cli
