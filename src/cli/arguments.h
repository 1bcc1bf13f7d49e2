#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stoker::cli {

/// Where a flag's value goes. bool: a switch that takes no value.
using Target = std::variant<bool*, std::string*, std::optional<std::int64_t>*,
                            std::optional<double>*, std::vector<std::string>*>;

struct Flag {
  std::string names;  ///< "--gpu" or "-o,--output"; without dashes: a positional argument
  std::string help;   ///< one line, default included
  Target target;
  bool required = false;
  std::string group = {};  ///< heading that it stands under in --help; "": Options
};

/// The flags with this heading.
[[nodiscard]] std::vector<Flag> grouped(std::string group, std::vector<Flag> flags);

/// One verb.
struct Command {
  std::string name;
  std::string summary;   ///< one line of `stoker --help`
  std::string examples;  ///< shown below its own help
  std::vector<Flag> flags;
  std::function<Result<int>()> run;  ///< the exit code, or an error
};

/// Parses the command line and runs the verb that it names; prints errors as one sentence on
/// stderr. Returns the exit code: 0 fine, 1 the answer is no, 2 usage, 3 bad input.
int run_command_line(const std::vector<Command>& commands, int argc, char** argv);

[[nodiscard]] int exit_code_of(ErrorCode code);

}  // namespace stoker::cli
