#pragma once

#include <span>
#include <string>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// stoker(1) in the man macros of troff: every verb with all of its settings, from the same table
/// as --help.
[[nodiscard]] std::string man_page(std::span<const Section> sections);

}  // namespace stoker::cli
