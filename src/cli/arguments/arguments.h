#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {

/// One verb. Its settings are those of settings_of(name); `bindings` say where their values go.
struct Command {
  std::string name;
  std::string summary;   ///< one line of `stoker --help`
  std::string examples;  ///< shown below its own help
  std::vector<Binding> bindings;
  std::function<Result<int>()> run;  ///< the exit code, or an error
  /// Where words behind "--" go, as they are: a command of the user's. Without it they count as
  /// this verb's own.
  std::vector<std::string>* rest = nullptr;
  std::string rest_words = "COMMAND";  ///< what the help calls it
};

/// A verb whose work is Python's: its words go to `python -m stoker VERB`, which has its own
/// --help. No `run`.
[[nodiscard]] Command python_command(std::string name, std::string summary);

/// Verbs that serve one want of a user.
struct Section {
  std::string heading;
  std::vector<Command> commands;
};

/// Parses the command line and runs the verb that it names; prints errors as one sentence on
/// stderr. Returns the exit code: 0 fine, 1 the answer is no, 2 usage, 3 bad input.
int run_command_line(std::span<const Section> sections, const std::vector<std::string>& words);

/// Fills the settings of a verb from its words, which are in our names. Ranges and names are
/// checked.
[[nodiscard]] Status parse_words(const Command& command, const std::vector<std::string>& words);

[[nodiscard]] int exit_code_of(ErrorCode code);

}  // namespace stoker::cli
