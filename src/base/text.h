#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

/// The nearest of `names` to what was typed, by edit distance on letters and digits alone; empty
/// when nothing is near.
[[nodiscard]] std::string nearest_name(std::string_view typed, std::span<const std::string> names);

/// "; did you mean X?" or nothing.
[[nodiscard]] std::string suggestion(std::string_view typed, std::span<const std::string> names);

/// Lower case, letters and digits only: "RTX-3090" -> "rtx3090".
[[nodiscard]] std::string simplified(std::string_view name);

/// ASCII letters in lower case, all else as it is.
[[nodiscard]] std::string lower_case(std::string_view text);
[[nodiscard]] bool has_part(std::string_view text, std::string_view part);

/// Parses "64G", "512MiB", "1.5 GB", "1000"; binary multiples, since memory is meant. Refuses
/// negative, absurd (> 2^60) and malformed sizes.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text);

/// "12.1 GiB", "38.6 MiB", "512 B".
[[nodiscard]] std::string human_bytes(Bytes bytes);
/// "41 us", "12.3 ms", "20 s", "3 min 20 s", "2 h 05 min".
[[nodiscard]] std::string human_time(Nanos time);
/// "1,234,567"
[[nodiscard]] std::string with_commas(std::int64_t number);
/// One line that a terminal shows as it is: what would move its cursor, change its colours or turn
/// its direction is a question mark, line breaks and bytes that are no UTF-8 too. For all text that
/// comes from files.
[[nodiscard]] std::string printable(std::string_view text);
/// Text that a terminal shows as it is, with line breaks and tabulators kept.
[[nodiscard]] std::string printable_lines(std::string_view text);
/// JSON whose strings show a terminal nothing that steers it: what JSON lets stand plain is
/// escaped, so that readers get the same text.
[[nodiscard]] std::string escaped(std::string_view json);
/// FNV-1a, 64 bits: the same on every machine and version, unlike std::hash; not for secrets.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace stoker
