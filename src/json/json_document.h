#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

/// Internal to the readers of probe and rows files.
namespace stoker {

/// What a file of ours is called in errors, and how deep it may nest: deeper text is an attack on the
/// parser's stack.
struct DocumentKind {
  std::string_view name;  ///< "a probe file"
  std::string_view cure;  ///< "probe the folder again"
  int max_depth = 8;
};

/// The document of a file that `where` names in errors.
[[nodiscard]] Result<nlohmann::ordered_json> json_document(std::string_view text,
                                                           const std::string& where,
                                                           const DocumentKind& kind);

}  // namespace stoker
