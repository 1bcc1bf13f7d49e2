#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker::study {

/// How a command is started.
struct ChildOptions {
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> environment{};  ///< beside the inherited one
  std::string folder{};      ///< in which it starts; empty: here
  std::vector<int> cores{};  ///< processors that it may use; empty: any
};

/// A command in a process group of its own, with nothing on its standard input. It dies with the
/// process that started it, whatever kills that one.
struct Child {
  pid_t process = -1;
  int output = -1, errors = -1;  ///< to read from, without waiting
};

/// Refused: a command that cannot be started, with the system's reason.
[[nodiscard]] Result<Child> start_child(const ChildOptions& options);

/// Processes below this one, at any depth, that still live.
[[nodiscard]] std::vector<pid_t> descendants(pid_t root);
/// Their resident memory together, in bytes. Pages that they share count for each.
[[nodiscard]] std::int64_t resident_bytes(const std::vector<pid_t>& processes);

}  // namespace stoker::study
