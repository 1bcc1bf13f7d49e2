#include "cli/arguments/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/setting.h"
#include "base/text.h"
#include "cli/arguments/blank_values.h"
#include "cli/arguments/counts.h"
#include "cli/arguments/help.h"
#include "cli/arguments/man_page.h"
#include "cli/arguments/meant_verb.h"
#include "cli/arguments/refused_words.h"
#include "cli/arguments/screen_words.h"
#include "cli/arguments/typed_names.h"
#include "cli/arguments/version.h"
#include "cli/arguments/written_values.h"
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
    if constexpr (!std::is_same_v<Value, std::vector<std::string>>) {
      const auto plain = [row = &setting](std::string& text) {
        text = plain_value(*row, text);
        return std::string();
      };
      if (!setting.counts) option->transform(CLI::Validator(plain, ""));
    }
    if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
      // "--dim a=1 MODEL" must not swallow the model.
      option->allow_extra_args(setting.positional);
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

/// What may stand in place of a verb.
const std::vector<std::string> kFirstFlags{"--help", "--help-all", "--man", "--version"};

bool is_version(std::string_view word) { return word == "version" || word == "-v" || word == "-V"; }

int unknown_verb(std::span<const Section> sections, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const Section& section : sections) {
    for (const Command& command : section.commands) names.push_back(command.name);
  }
  const std::string& word = words.front();
  const std::string meant = meant_command(words, names);
  const std::string what =
      is_version(word) ? "unknown word \"" + word + "\"; did you mean stoker --version?"
      : word.starts_with("-")
          ? "unknown flag " + word + suggestion(word, kFirstFlags)
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
  const std::vector<std::string>& own = command.run ? screen->words : all;
  const auto typed = in_our_names(command.name, own);
  if (!typed) return report(typed.error(), {});
  if (const Status given = refuse_blank_values(command.name, typed->words); !given)
    return report(given.error(), *typed);
  if (!command.run) {
    std::vector<std::string> words{command.name};
    words.insert(words.end(), typed->words.begin(), typed->words.end());
    const auto code = run_python_stoker(words, false);
    return code ? *code : report(code.error(), *typed);
  }
  if (const auto part = wanted_help(own)) {
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
  if (command == nullptr) return unknown_verb(sections, words);
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
    return tl::unexpected(refusal_of(error.what(), command, words));
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
