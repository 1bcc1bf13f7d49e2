#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::cli {

/// How the verb begins that does what this word means: "profile" -> "explain FILE". Empty: nothing
/// is known of it.
[[nodiscard]] std::string verb_by_meaning(std::string_view typed);

/// The command that was most likely meant by words that begin with none of `verbs`, with what they
/// tell put in its places: "fits resnet50 --gpu t4" -> "predict resnet50 --gpu t4 --batch N", "how
/// many workers for gpt2 on t4" -> "plan gpt2 --gpu t4 --data FOLDER". Empty: nothing is known of
/// them, or the first is more likely one of the verbs, misspelt.
[[nodiscard]] std::string meant_command(const std::vector<std::string>& words,
                                        const std::vector<std::string>& verbs);

}  // namespace stoker::cli
