#pragma once

#include <string>
#include <string_view>

namespace stoker {

/// The spec under which a library most likely has the network that this name means, by its family:
/// "hf:meta-llama/llama-2-7b", "torchvision:mobilenet_v2"; "hf:meta-llama/NAME" where the name
/// lacks a size. Empty: the family is not known.
[[nodiscard]] std::string library_name(std::string_view typed);

}  // namespace stoker
