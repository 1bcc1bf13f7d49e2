#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

/// Refuses a setting whose value is empty or blank, an empty value among those of a list, and an
/// empty word where a verb's own words stand. Mostly a variable of a script's is unset; taken for
/// "not given", the answer would be one to another question. `words` are in our names.
[[nodiscard]] Status refuse_blank_values(std::string_view verb,
                                         const std::vector<std::string>& words);

}  // namespace stoker::cli
