#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::study {

/// An axis may have this many values; a study this many trials, and so many combinations before
/// conditions leave some out.
inline constexpr std::uint64_t kMostValues = 100'000, kMostTrials = 100'000,
                               kMostCombinations = 10'000'000;

/// The values that `typed` stands for:
///     32,64,128      these
///     0..8           whole numbers, both ends included
///     0..64+8        in steps of 8; 0.1..0.5+0.1 as well
///     32..1024x2     each twice the one before
///     2^9..2^14      powers of 2
///     1e-5..1e-1     powers of 10
/// A list may hold ranges. Values are texts: numbers in the shortest form that reads back the same.
/// Refuses more than kMostValues before it makes any. `repeats` is how whoever typed them asks for
/// settings to run again ("--repeat 2"), where that can be asked for: the cure of a value given
/// twice.
[[nodiscard]] Result<std::vector<std::string>> parse_values(std::string_view typed,
                                                            std::string_view repeats = {});

/// One range ("0..8") where `word` is one; nullopt where it is a plain value.
[[nodiscard]] Result<std::optional<std::vector<std::string>>> parse_range(std::string_view word);

/// The value as a number, where all of it is one.
[[nodiscard]] std::optional<double> as_number(std::string_view value);

}  // namespace stoker::study
