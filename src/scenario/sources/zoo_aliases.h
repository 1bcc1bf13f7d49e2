#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// The zoo's model that people mean by this name: "llama-3-8b" and "llama3" are "llama_3_8b".
/// Empty: the name is none of these, or the model is not in `names`.
[[nodiscard]] std::string zoo_alias(std::string_view name, const std::vector<std::string>& names);

/// What to say of a well-known network that the zoo has a relative of: "of its kind the zoo holds
/// yolo_s". Empty: nothing is known.
[[nodiscard]] std::string zoo_relative(std::string_view name,
                                       const std::vector<std::string>& names);

}  // namespace stoker
