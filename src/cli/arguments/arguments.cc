#include "cli/arguments/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/counts.h"
#include "cli/arguments/field_words.h"
#include "cli/arguments/help.h"
#include "cli/arguments/man_page.h"
#include "cli/arguments/screen_words.h"
#include "cli/arguments/typed_names.h"
#include "cli/arguments/version.h"
#include "cli/outside/output.h"
#include "cli/outside/python.h"
#include "report/json/answer.h"
#include "scenario/sources/tools.h"

namespace stoker::cli {
namespace {

constexpr int kUsage = 2;
constexpr int kBadInput = 3;

/// What CLI11 then reads as a number; what it answers with is the refusal.
std::string count_in_digits(std::string& text) {
  const auto count = parse_count(text);
  if (!count) return "\"" + text + "\" is no whole number; write 50000, 50k or 1.28M";
  text = std::to_string(*count);
  return {};
}

/// Adds a setting to CLI11's parser.
struct Binder {
  CLI::App& app;
  const SettingRow& setting;
  std::string name;  ///< "--clip", "-o,--output", "model"

  void operator()(bool* target) const { app.add_flag(name, *target); }
  void operator()(std::optional<bool>* target) const {
    app.add_flag_function(name, [target](std::int64_t count) { *target = count > 0; });
    app.add_flag_function("--no-" + std::string(setting.name),
                          [target](std::int64_t count) { *target = count <= 0; });
  }
  template <class Value>
  void operator()(Value* target) const {
    CLI::Option* option = app.add_option(name, *target);
    if (setting.required) option->required();
    if (setting.counts) option->transform(CLI::Validator(count_in_digits, ""));
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      // "--dim a=1 MODEL" must not swallow the model.
      option->allow_extra_args(false);
      if (!setting.keeps_commas) option->delimiter(',');
    }
  }
};

std::string parser_name(const SettingRow& setting) {
  if (setting.positional) return std::string(setting.name);
  const std::string flag = "--" + std::string(setting.name);
  return setting.letter == 0 ? flag : std::string("-") + setting.letter + "," + flag;
}

/// "--no-json" leaves out what is left out without it, so that programs can say so; a pair's usual
/// half may be said, too.
void accept_the_rest(CLI::App& app, const Command& command) {
  for (const SettingRow* setting : settings_of(command.name)) {
    if (setting->positional) continue;
    for (const std::string prefix : {"--", "--no-"}) {
      const std::string flag = prefix + std::string(setting->name);
      if (app.get_option_no_throw(flag) == nullptr) app.add_flag(flag);
    }
  }
}

/// What is understood but not modelled: refused by name, never ignored.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNotModelled{
    {{"--tensor-parallel", "tensor parallelism is not modelled yet"},
     {"--pipeline-parallel", "pipeline parallelism is not modelled yet"},
     {"--html",
      "this verb writes no page; use --json (pages: plan, predict, validate, explain, watch, "
      "sweep, study, tune)"}}};

std::vector<std::string> all_flags(const Command& command) {
  std::vector<std::string> names{"--help", "--help-all"};
  for (const SettingRow* setting : settings_of(command.name)) {
    const std::vector<std::string> flags = flags_of(*setting);
    names.insert(names.end(), flags.begin(), flags.end());
  }
  return names;
}

std::optional<Error> unknown_flag(const Command& command, const std::vector<std::string>& words) {
  const std::vector<std::string> names = all_flags(command);
  for (const std::string& word : words) {
    if (!word.starts_with("--") || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const auto missing = std::find_if(kNotModelled.begin(), kNotModelled.end(),
                                      [&](const auto& m) { return m.first == name; });
    if (missing != kNotModelled.end())
      return Error{ErrorCode::kUnsupported, std::string(missing->second), name};
    const std::string meant = advice_on(command.name, name);
    const std::string by_words = flag_by_words(name, names);
    const std::string near =
        by_words.empty() ? suggestion(name, names) : "; did you mean " + by_words + "?";
    return Error{ErrorCode::kUsage,
                 "unknown flag " + name + (meant.empty() ? near : "; " + meant) + " (stoker " +
                     command.name + " --help-all lists all)",
                 {}};
  }
  return std::nullopt;
}

/// CLI11's "Could not convert: --image-size = 500x375" in a sentence that says what belongs there.
std::string unreadable_value(const std::string& message, const Command& command) {
  constexpr std::string_view kBegins = "Could not convert: ", kIs = " = ";
  const auto is = message.find(kIs);
  if (!message.starts_with(kBegins) || is == std::string::npos) return message;
  const std::string flag = message.substr(kBegins.size(), is - kBegins.size());
  const std::string value = message.substr(is + kIs.size());
  const SettingRow* setting = find_setting(command.name, flag.substr(flag.find_first_not_of('-')));
  if (setting == nullptr) return message;
  return flag + ": \"" + value + "\" is no " +
         (setting->type == SettingType::kWhole ? "whole number" : "number") +
         "; it takes: " + std::string(setting->words) +
         (value == "auto" || value == "best" ? "; left out, it is chosen" : "");
}

/// CLI11's "The following argument was not expected: t4" (or "arguments were": t4 a100) in a
/// sentence with what is taken.
std::string unexpected_word(const std::string& message, const Command& command) {
  const auto colon = message.find(": ");
  if (!message.starts_with("The following argument") || colon == std::string::npos) return message;
  std::string places;
  for (const SettingRow* setting : settings_of(command.name)) {
    if (setting->positional) places += " " + std::string(setting->value);
  }
  const bool several = message.starts_with("The following arguments");
  return (several ? "words too many: " : "one word too many: ") + message.substr(colon + 2) +
         "; stoker " + command.name + " takes" +
         (places.empty() ? " flags alone" : places + " and flags");
}

Error explain(const CLI::ParseError& error, const Command& command,
              const std::vector<std::string>& words) {
  if (auto unknown = unknown_flag(command, words)) return *unknown;
  std::string message = error.what();
  if (const auto newline = message.find('\n'); newline != std::string::npos)
    message.resize(newline);
  message = unexpected_word(unreadable_value(message, command), command);
  return {ErrorCode::kUsage, message + " (stoker " + command.name + " --help)", {}};
}

int report(const Error& error, const TypedWords& words) {
  if (!is_already_explained(error))
    std::fprintf(stderr, "stoker: %s\n",
                 printable_lines(words.as_typed(with_flags(error.text()))).c_str());
  return exit_code_of(error.code);
}

const Command* find_command(std::span<const Section> sections, std::string_view name) {
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      if (command.name == name) return &command;
    }
  }
  return nullptr;
}

int unknown_verb(std::span<const Section> sections, const std::string& word) {
  std::vector<std::string> names;
  for (const Section& section : sections) {
    for (const Command& command : section.commands) names.push_back(command.name);
  }
  const std::string meant = verb_by_meaning(word);
  const std::string what =
      word.starts_with("-")
          ? "unknown flag " + word
          : "unknown verb \"" + word + "\"" +
                (meant.empty() ? suggestion(word, names) : "; did you mean stoker " + meant + "?");
  std::fprintf(stderr, "stoker: %s (stoker --help-all lists all)\n", printable(what).c_str());
  return kUsage;
}

std::optional<HelpPart> wanted_help(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") break;
    if (word == "--help" || word == "-h") return HelpPart::kFirst;
    if (word == "--help-all") return HelpPart::kAll;
  }
  return std::nullopt;
}

bool asks_for_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

/// What a program reads where a verb's answer is no: why, in the envelope of all answers.
std::string no_answer(const Command& command, const Error& error) {
  json::Value json = answer("stoker-no-answer-1", kVersion);
  json["verb"] = command.name;
  json["answer"] = json::Value();
  json["reason"] = with_flags(error.text());
  return answer_text(json);
}

int run_verb(const Command& command, const std::vector<std::string>& all) {
  const auto screen = take_screen_words(command.name, all);
  if (!screen) return report(screen.error(), {});
  prepare_screen(*screen);
  const std::vector<std::string>& given = command.run ? screen->words : all;
  const auto typed = in_our_names(command.name, given);
  if (!typed) return report(typed.error(), {});
  if (!command.run) {
    std::vector<std::string> words{command.name};
    words.insert(words.end(), typed->words.begin(), typed->words.end());
    const auto code = run_python_stoker(words, false);
    return code ? *code : report(code.error(), *typed);
  }
  if (const auto part = wanted_help(given)) {
    print(verb_help(command, *part));
    return 0;
  }
  if (const Status parsed = parse_words(command, typed->words); !parsed)
    return report(parsed.error(), *typed);
  const Result<int> code = command.run();
  if (code) return *code;
  if (code.error().code == ErrorCode::kAnswerIsNo && asks_for_json(typed->words))
    print(no_answer(command, code.error()));
  return report(code.error(), *typed);
}

/// "help", "help VERB", "help --man" are "--help", "VERB --help", "--man".
std::vector<std::string> without_help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "help") return words;
  std::vector<std::string> plain(words.begin() + 1, words.end());
  if (!plain.empty() && plain[0].starts_with("--")) return plain;
  plain.insert(plain.size() > 0 ? plain.begin() + 1 : plain.begin(), "--help");
  return plain;
}

int run_words(std::span<const Section> sections, const std::vector<std::string>& typed) {
  const std::vector<std::string> words = without_help(typed);
  prepare_screen({});
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print(short_help(sections));
    return words.empty() ? kUsage : 0;
  }
  if (words[0] == "--help-all") {
    print(main_help(sections));
    return 0;
  }
  if (words[0] == "--man") {
    print(man_page(sections));
    return 0;
  }
  if (words[0] == "--version") {
    std::printf("stoker %s\n", kVersion);
    return 0;
  }
  const Command* command = find_command(sections, words[0]);
  if (command == nullptr) return unknown_verb(sections, words[0]);
  return run_verb(*command, {words.begin() + 1, words.end()});
}

}  // namespace

Command python_command(std::string name, std::string summary) {
  return {std::move(name), std::move(summary), {}, {}, {}};
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

Status parse_words(const Command& command, const std::vector<std::string>& all) {
  const auto end = command.rest == nullptr ? all.end() : std::find(all.begin(), all.end(), "--");
  const std::vector<std::string> words(all.begin(), end);
  if (end != all.end()) command.rest->assign(end + 1, all.end());
  CLI::App app("", command.name);
  app.set_help_flag();
  for (const Binding& binding : command.bindings) {
    const SettingRow* setting = find_setting(command.name, binding.name);
    if (setting == nullptr)
      return fail(ErrorCode::kUsage, "has no row in the table of settings: a bug in stoker",
                  std::string(binding.name));
    std::visit(Binder{app, *setting, parser_name(*setting)}, binding.target);
  }
  accept_the_rest(app, command);
  try {
    app.parse(
        std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes them from the end
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(explain(error, command, words));
  }
  take_value_aliases(command.name, command.bindings);
  return check_values(command.name, command.bindings);
}

int run_command_line(std::span<const Section> sections, const std::vector<std::string>& words) {
  const int code = run_words(sections, words);
  if (const Status written = finish_output(); !written) return report(written.error(), {});
  return code;
}

}  // namespace stoker::cli
