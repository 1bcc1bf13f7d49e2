#pragma once

#include <span>
#include <string>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// Names that are offered beside files, separated by blanks: the zoo's models, the catalogue's
/// GPUs.
struct KnownNames {
  std::string models, gpus;
};

/// Scripts that complete verbs, flags and known values in a shell.
[[nodiscard]] std::string bash_completion(std::span<const Section> sections,
                                          const KnownNames& known);
[[nodiscard]] std::string zsh_completion(std::span<const Section> sections,
                                         const KnownNames& known);
[[nodiscard]] std::string fish_completion(std::span<const Section> sections,
                                          const KnownNames& known);

}  // namespace stoker::cli
