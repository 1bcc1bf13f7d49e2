#pragma once

#include <span>
#include <string>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// Scripts that complete verbs, flags and known values in a shell.
[[nodiscard]] std::string bash_completion(std::span<const Section> sections);
[[nodiscard]] std::string zsh_completion(std::span<const Section> sections);
[[nodiscard]] std::string fish_completion(std::span<const Section> sections);

}  // namespace stoker::cli
