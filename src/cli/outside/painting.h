#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stoker::cli {

/// Verdicts, warnings and limits in colour, for a terminal: the text must hold no escape sequences
/// yet.
[[nodiscard]] std::string painted(std::string_view text);

/// Lines that are longer than `columns` go on below, two blanks further in than they began. Lines
/// of tables fit already (report/text/layout.h).
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns);

}  // namespace stoker::cli
