#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker::cli {

/// Writes an answer to standard output. Text of files may be in it, so escape sequences are made
/// harmless on the way (base/text.h); JSON has none.
void print(std::string_view text);

/// What is said beside an answer, on standard error as a rule: cleaned in the same way.
void say(std::FILE* stream, std::string_view text);

/// How answers look; `columns` 0: as wide as need be.
struct OutputStyle {
  bool colour = false;
  std::size_t columns = 0;
};
void set_output_style(const OutputStyle& style);

/// Writes a page to the file that --html names, and says so on standard error.
[[nodiscard]] Status write_page(const std::string& file, const std::string& page);

/// Hands on what is still in standard output's buffer. Fails when not all of the answer was
/// written: a full device, a closed descriptor.
[[nodiscard]] Status finish_output();

}  // namespace stoker::cli
