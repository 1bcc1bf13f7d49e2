#pragma once

#include <span>
#include <string>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// docs/reference/settings.md: every setting of every verb, as the table describes it.
[[nodiscard]] std::string settings_page(std::span<const Section> sections);

/// The settings of plan and predict by name, one a line, for reading on a terminal.
[[nodiscard]] std::string settings_list();

}  // namespace stoker::cli
