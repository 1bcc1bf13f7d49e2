#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

enum class Colour { kAuto, kAlways, kNever };

/// What every verb takes about how its answer looks, besides its own settings.
struct ScreenWords {
  Colour colour = Colour::kAuto;
  bool quiet = false;              ///< without what the answer rests on
  std::vector<std::string> words;  ///< the others
};

/// Takes --color WHEN, -q and --quiet out of a verb's words, up to "--"; those that the verb has as
/// settings of its own are left to it.
[[nodiscard]] Result<ScreenWords> take_screen_words(std::string_view verb,
                                                    const std::vector<std::string>& words);

/// Lays answers out for the terminal that standard output is, if it is one.
void prepare_screen(const ScreenWords& wanted);

}  // namespace stoker::cli
