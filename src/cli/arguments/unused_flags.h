#pragma once

#include <string_view>
#include <vector>

#include "cli/arguments/arguments.h"

namespace stoker::cli {

/// Whether a flag holds anything but its default, nothing.
[[nodiscard]] bool was_given(const Flag& flag);

/// Refuses the first of `names` that was given: a flag that changes nothing would be taken for one
/// that was obeyed. `why` continues "--explain ...".
[[nodiscard]] Status refuse_given(const std::vector<Flag>& flags,
                                  const std::vector<std::string_view>& names, std::string_view why);

/// Refuses whatever was given besides `used`.
[[nodiscard]] Status refuse_all_but(const std::vector<Flag>& flags,
                                    const std::vector<std::string_view>& used,
                                    std::string_view why);

}  // namespace stoker::cli
