#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::study {

/// Seconds of "90", "90s", "10min", "1h30min", "2d", "1:30:00" or "2-12:00:00"; nullopt: none.
[[nodiscard]] std::optional<double> parse_seconds(std::string_view text);

/// "2-12:00:00" and "0:10:00", as Slurm takes and prints them.
[[nodiscard]] std::string clock_text(double seconds);

}  // namespace stoker::study
