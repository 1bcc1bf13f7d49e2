#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace stoker {

/// What every answer of `--json` begins with: its kind and version, "stoker-report-1", which names
/// its schema in docs/schema, and the version of this program.
[[nodiscard]] json::Value answer(std::string_view schema, std::string_view tool_version);

/// An answer as it is printed.
[[nodiscard]] std::string answer_text(const json::Value& answer);

}  // namespace stoker
