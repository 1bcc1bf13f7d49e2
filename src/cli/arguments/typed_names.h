#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

/// A verb's words in our own names of settings, and what the user typed for them.
struct TypedWords {
  std::vector<std::string> words;  ///< "--num_workers=4" -> "--workers=4"
  std::map<std::string, std::string>
      typed;  ///< "--workers" -> "--num_workers", where the two differ

  /// A sentence that names settings by our flags, in the names that were typed.
  [[nodiscard]] std::string as_typed(const std::string& sentence) const;
};

/// Words after "--" stay as they are. Refuses a setting that was given by two names, or together
/// with its opposite.
[[nodiscard]] Result<TypedWords> in_our_names(std::string_view verb,
                                              const std::vector<std::string>& words);

}  // namespace stoker::cli
