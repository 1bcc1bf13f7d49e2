#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "cli/version.h"

namespace stoker::cli {
namespace {

constexpr int kUsage = 2;
constexpr int kBadInput = 3;

/// An error without words was already explained by a child process.
void print_error(const Error& error) {
  if (error.text().empty()) return;
  std::fprintf(stderr, "stoker: %s\n", error.text().c_str());
}

struct Binder {
  CLI::App& app;
  const Flag& flag;

  void operator()(bool* target) const { head(app.add_flag(flag.names, *target, flag.help)); }
  template <class Value>
  void operator()(Value* target) const {
    CLI::Option* option = head(app.add_option(flag.names, *target, flag.help));
    if (flag.required) option->required();
    // A list is given by repeating the flag: "--dim a=1 MODEL" must not swallow the model.
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) option->allow_extra_args(false);
  }
  CLI::Option* head(CLI::Option* option) const {
    return flag.group.empty() ? option : option->group(flag.group);
  }
};

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names{"--help"};
  for (const Flag& flag : command.flags) {
    for (const std::string& name : split(flag.names, ',')) {
      if (name.starts_with("--")) names.push_back(name);
    }
  }
  return names;
}

/// Flags that stand for what is understood but not modelled: refused by name, never ignored.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNotModelled{
    {{"--compile", "torch.compile is not modelled yet; leave the flag out for the eager step"},
     {"--tensor-parallel", "tensor parallelism is not modelled yet"},
     {"--pipeline-parallel", "pipeline parallelism is not modelled yet"},
     {"--html", "HTML reports are not there yet; use --json"}}};

Error explain(const CLI::ParseError& error, const Command* command,
              const std::vector<std::string>& given) {
  if (command != nullptr) {
    const auto names = flag_names(*command);
    for (const std::string& word : given) {
      if (!word.starts_with("-") || word == "-" || word == "--") continue;
      const std::string name = word.substr(0, word.find('='));
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const auto missing = std::find_if(kNotModelled.begin(), kNotModelled.end(),
                                        [&](const auto& m) { return m.first == name; });
      if (missing != kNotModelled.end())
        return {ErrorCode::kUnsupported, std::string(missing->second), name};
      if (name.starts_with("--")) {
        return {ErrorCode::kUsage,
                "unknown flag " + name + suggestion(name, names) + " (stoker " + command->name +
                    " --help lists all)",
                {}};
      }
    }
  }
  std::string message = error.what();
  if (const auto newline = message.find('\n'); newline != std::string::npos)
    message.resize(newline);
  return {ErrorCode::kUsage,
          message +
              (command != nullptr ? " (stoker " + command->name + " --help)" : " (stoker --help)"),
          {}};
}

}  // namespace

std::vector<Flag> grouped(std::string group, std::vector<Flag> flags) {
  for (Flag& flag : flags) flag.group = group;
  return flags;
}

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kAnswerIsNo:
      return 1;
    case ErrorCode::kUsage:
      return kUsage;
    default:
      return kBadInput;
  }
}

int run_command_line(const std::vector<Command>& commands, int argc, char** argv) {
  CLI::App app("Keeps GPUs fed: says before a GPU is rented how a training job will run, and why.",
               "stoker");
  app.set_version_flag("--version", std::string("stoker ") + kVersion);
  app.require_subcommand(0, 1);
  app.footer(
      "stoker VERB --help explains a verb. Exit codes: 0 fine, 1 the answer is no, 2 usage, 3 bad "
      "input.");
  std::vector<CLI::App*> verbs;
  std::vector<std::string> names;
  for (const Command& command : commands) {
    CLI::App* verb = app.add_subcommand(command.name, command.summary);
    verb->footer(command.examples);
    for (const Flag& flag : command.flags) std::visit(Binder{*verb, flag}, flag.target);
    verbs.push_back(verb);
    names.push_back(command.name);
  }
  const std::vector<std::string> given(argv + std::min(argc, 2), argv + argc);
  const auto chosen = std::find(names.begin(), names.end(), argc > 1 ? argv[1] : "");
  const Command* command =
      chosen == names.end() ? nullptr : &commands[static_cast<std::size_t>(chosen - names.begin())];
  if (argc < 2) {
    std::fputs(app.help().c_str(), stdout);
    return kUsage;
  }
  if (command == nullptr && argv[1][0] != '-') {
    print_error({ErrorCode::kUsage,
                 "unknown verb \"" + std::string(argv[1]) + "\"" + suggestion(argv[1], names) +
                     " (stoker --help lists all)",
                 {}});
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const Error explained = explain(error, command, given);
    print_error(explained);
    return exit_code_of(explained.code);
  }
  if (command == nullptr) return kUsage;
  const Result<int> code = command->run();
  if (code) return *code;
  print_error(code.error());
  return exit_code_of(code.error().code);
}

}  // namespace stoker::cli
