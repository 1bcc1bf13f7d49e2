#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"

/// Internal to src/report/study: how figures and texts of trials are written.
namespace stoker {

/// The text that base/text.h lets be shown, cut at so many characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t at_most);
/// "-" where there is none; sizes and times by the ends of their names, _bytes and _s.
[[nodiscard]] std::string named_figure(const std::string& name, const std::optional<double>& value);
/// A cell of a CSV file, in quotes where it has to be.
[[nodiscard]] std::string csv_cell(const std::string& text);
[[nodiscard]] std::string seconds_text(const std::optional<double>& seconds);

}  // namespace stoker
