#pragma once

#include <string_view>

#include "base/result.h"

namespace stoker::cli {

/// Writes an answer to standard output. Text of files may be in it, so escape sequences are made
/// harmless on the way (base/text.h); JSON has none.
void print(std::string_view text);

/// Hands on what is still in standard output's buffer. Fails when not all of the answer was
/// written: a full device, a closed descriptor.
[[nodiscard]] Status finish_output();

}  // namespace stoker::cli
