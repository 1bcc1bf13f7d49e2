#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/sample/sample.h"

/// What a recording says in JSON: facts of the watch and of its processes. Unknown members are
/// passed over; a missing one is its default.
namespace stoker::record {

[[nodiscard]] std::string to_json(const WatchFacts& facts);
[[nodiscard]] std::optional<WatchFacts> facts_from_json(std::string_view text);

[[nodiscard]] std::string to_json(const std::vector<ProcessFacts>& processes);
[[nodiscard]] std::optional<std::vector<ProcessFacts>> processes_from_json(std::string_view text);

}  // namespace stoker::record
