#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::cli {

/// A setting and its value that the field has a switch for.
struct FieldSwitch {
  std::string_view setting, value;
};

/// "--gradient-checkpointing" is --checkpoint blocks, "--bf16" is --precision amp-bf16; nullopt
/// where it is no such switch, or the verb has no such setting.
[[nodiscard]] std::optional<FieldSwitch> switch_of_the_field(std::string_view verb,
                                                             std::string_view flag);

/// The name that shares most of the words which tell what is set: "--workers-count" and
/// "--workers". Empty: none shares any.
[[nodiscard]] std::string flag_by_words(std::string_view flag,
                                        const std::vector<std::string>& names);

/// What helps someone who typed a flag of the field that is none here: chosen by what it means,
/// since spelling leads elsewhere. Empty: nothing is known of it.
[[nodiscard]] std::string advice_on(std::string_view verb, std::string_view flag);

}  // namespace stoker::cli
