#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

/// Internal to src/machine: how values are written so that TOML reads them back the same.
namespace stoker {

/// A text in quotes, with what TOML would misread escaped.
[[nodiscard]] std::string toml_string(std::string_view text);

/// A size in the largest unit that keeps it exact: "24GiB", "24260MiB", 12622168064.
[[nodiscard]] std::string toml_size(Bytes bytes);

}  // namespace stoker
