#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// Content of a file of /proc or /sys, or nothing when it cannot be read. Tests give a map.
using SystemFiles = std::function<std::optional<std::string>(const std::string& path)>;
/// Names of what a folder of /proc, /sys or /dev holds, in order; empty when it cannot be listed.
using SystemFolders = std::function<std::vector<std::string>(const std::string& path)>;

/// The files and folders of this computer.
[[nodiscard]] SystemFiles system_files();
[[nodiscard]] SystemFolders system_folders();

/// The value of the first line "key: value" ("Cpus_allowed_list:\t0-3", "model name\t: Xeon"),
/// without blanks around it; empty when there is none.
[[nodiscard]] std::string_view value_of(std::string_view text, std::string_view key);

/// The text without blanks and line ends at either end.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// The whole text as a number, blanks around it aside; nullopt when it is none.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text);
[[nodiscard]] std::optional<double> decimal_number(std::string_view text);

/// Processors that a list like "0-3,8,10-11" names; empty when it is malformed.
[[nodiscard]] std::vector<int> cpu_list(std::string_view list);
/// How many they are; 0 when the list is malformed.
[[nodiscard]] int count_cpu_list(std::string_view list);

}  // namespace stoker
