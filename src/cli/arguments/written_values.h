#pragma once

#include <string>
#include <string_view>

#include "scenario/settings/settings.h"

namespace stoker::cli {

/// Money as people write it, as a number: "$0.35/h", "0.35 USD" -> "0.35". Other text as it is.
[[nodiscard]] std::string plain_money(std::string_view text);

/// A number of a setting as people write it, as digits: "$5" of money, "50ms" or "0.05 s" of
/// milliseconds, "224x224" or "224px" of an image's side, "1-8" of numbers of GPUs. Other text as
/// it is, for the parser to refuse.
[[nodiscard]] std::string plain_value(const SettingRow& setting, const std::string& text);

/// The number that a text without one meaning was most likely to say: "4k" of a length -> "4096",
/// "1_024" -> "1024", "256 samples" -> "256". Empty: none.
[[nodiscard]] std::string likely_number(std::string_view text);

/// "; write 4096", or nothing.
[[nodiscard]] std::string likely_words(std::string_view text);

}  // namespace stoker::cli
