#include "cli/arguments/refused_words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "cli/arguments/field_words.h"
#include "cli/arguments/written_values.h"
#include "device/catalogue/gpu_catalogue.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

using Words = std::vector<std::string>;

/// What is understood but not modelled: refused by name, never ignored.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNotModelled{
    {{"--tensor-parallel", "tensor parallelism is not modelled yet"},
     {"--pipeline-parallel", "pipeline parallelism is not modelled yet"},
     {"--html",
      "this verb writes no page; use --json (pages: plan, predict, validate, explain, watch, "
      "sweep, study, tune)"}}};

Words all_flags(const Command& command) {
  Words names{"--help", "--help-all"};
  for (const SettingRow* setting : settings_of(command.name)) {
    const Words flags = flags_of(*setting);
    names.insert(names.end(), flags.begin(), flags.end());
  }
  return names;
}

bool is_script(const std::string& word) { return word.ends_with(".py"); }

/// "; what train.py itself takes goes behind --: -- --lr 0.1" where a training script is given to a
/// verb that runs one.
std::string for_script(const Command& command, const Words& words, std::size_t flag) {
  const auto script = std::find_if(words.begin(), words.end(), is_script);
  if (command.rest == nullptr || command.rest_words != "ARGUMENTS" || script == words.end())
    return {};
  const bool has_value = flag + 1 < words.size() && !words[flag + 1].starts_with("-") &&
                         !is_script(words[flag + 1]) && words[flag].find('=') == std::string::npos;
  return "; what " + *script + " itself takes goes behind --: -- " + words[flag] +
         (has_value ? " " + words[flag + 1] : "");
}

/// "; it is a flag of stoker plan, predict", of one that this verb lacks.
std::string elsewhere(const std::string& flag) {
  Words verbs;
  for (const SettingRow& row : all_settings()) {
    if (row.positional || !answers_to(row, flag)) continue;
    for (std::string& verb : names_in(row.verbs)) {
      if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end())
        verbs.push_back(std::move(verb));
    }
  }
  constexpr std::size_t kMost = 3;
  if (verbs.empty()) return {};
  std::string text = "; it is a flag of stoker " + verbs.front();
  for (std::size_t i = 1; i < std::min(kMost, verbs.size()); ++i) text += ", " + verbs[i];
  return text;
}

/// "Does it fit?" is asked of predict, and `stoker fit` is another verb.
std::string fit_is_asked(const Command& command, const Words& words) {
  if (command.name != "fit") return {};
  const auto place = std::find_if(words.begin(), words.end(),
                                  [](const std::string& word) { return !word.starts_with("-"); });
  const bool rows = place != words.end() && place->ends_with(".csv");
  return rows ? std::string()
              : "; whether a job fits a GPU says stoker predict MODEL --gpu GPU --batch N";
}

/// "; what varies is said by --vary: --vary lr=0.1,0.01, with {lr} in the command" of a flag that
/// the command of a sweep takes.
std::string varied(const Command& command, const Words& words, std::size_t flag) {
  if (find_setting(command.name, "vary") == nullptr) return {};
  const std::string& word = words[flag];
  const auto equals = word.find('=');
  const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
  const bool bare = equals == std::string::npos;
  if (bare && (flag + 1 >= words.size() || words[flag + 1].starts_with("-"))) return {};
  const std::string values = bare ? words[flag + 1] : word.substr(equals + 1);
  return "; what varies is said by --vary: --vary " + name + "=" + values + ", and {" + name +
         "} stands in the command behind --";
}

/// What single letters stand for elsewhere; here flags are whole words.
constexpr auto kLetters = std::to_array<std::pair<char, std::string_view>>({{'b', "batch"},
                                                                            {'g', "gpu"},
                                                                            {'d', "data"},
                                                                            {'e', "epochs"},
                                                                            {'j', "workers"},
                                                                            {'w', "workers"},
                                                                            {'n', "samples"},
                                                                            {'p', "precision"},
                                                                            {'s', "seq-len"},
                                                                            {'m', "metric"}});

/// "-gpu t4": a whole word behind one dash.
std::optional<Error> one_dash(const Command& command, const Words& words) {
  const Words names = all_flags(command);
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string typed = word.substr(0, word.find('='));
    const bool whole = typed.size() > 2 && typed[0] == '-' &&
                       std::isalpha(static_cast<unsigned char>(typed[1])) != 0;
    if (whole && std::find(names.begin(), names.end(), "-" + typed) != names.end())
      return Error{
          ErrorCode::kUsage, "unknown flag " + typed + "; flags have two dashes: -" + typed, {}};
  }
  return std::nullopt;
}

/// A flag of one letter that the verb does not have.
std::optional<Error> unknown_letter(const Command& command, const Words& words) {
  const Words names = all_flags(command);
  for (const std::string& word : words) {
    if (word == "--") break;
    const bool letter = word.size() == 2 && word[0] == '-' &&
                        std::isalpha(static_cast<unsigned char>(word[1])) != 0;
    if (!letter || std::find(names.begin(), names.end(), word) != names.end()) continue;
    std::string meant;
    for (const auto& [c, name] : kLetters) {
      if (c == word[1] && find_setting(command.name, name) != nullptr)
        meant = "; flags are whole words here: --" + std::string(name);
    }
    const std::string advice = word == "-o" ? advice_on(command.name, "--out") : std::string();
    if (meant.empty() && !advice.empty()) meant = "; " + advice;
    return Error{
        ErrorCode::kUsage,
        "unknown flag " + word + meant + " (stoker " + command.name + " --help-all lists all)",
        {}};
  }
  return std::nullopt;
}

std::optional<Error> unknown_flag(const Command& command, const Words& words) {
  const Words names = all_flags(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--") || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const auto missing = std::find_if(kNotModelled.begin(), kNotModelled.end(),
                                      [&](const auto& m) { return m.first == name; });
    if (missing != kNotModelled.end())
      return Error{ErrorCode::kUnsupported, std::string(missing->second), name};
    const std::string meant = advice_on(command.name, name);
    std::string near = fit_is_asked(command, words);
    const std::string of_script = for_script(command, words, i);
    if (near.empty() && (meant.empty() || meant.ends_with("leave it out")) &&
        flag_by_words(name, names).empty())
      near = varied(command, words, i);
    // What only a script has is its own; what both may have is told with what it is here.
    if (near.empty() && !meant.empty() && (of_script.empty() || !meant.ends_with("leave it out")))
      near = "; " + meant;
    const std::string by_words = flag_by_words(name, names);
    if (near.empty() && !by_words.empty()) near = "; did you mean " + by_words + "?";
    if (near.empty() && of_script.empty()) near = elsewhere(name);
    if (near.empty() && of_script.empty()) near = suggestion(name, names);
    return Error{ErrorCode::kUsage,
                 "unknown flag " + name + near + of_script + " (stoker " + command.name +
                     " --help-all lists all)",
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
         (setting->type == SettingType::kWhole ? "whole number" : "number") + likely_words(value) +
         "; it takes: " + std::string(setting->words) +
         (value == "auto" || value == "best" ? "; left out, it is chosen" : "");
}

/// CLI11's "--lora: 1 required TEXT missing" in a sentence that says what belongs there.
std::string missing_value(const std::string& message, const Command& command) {
  const auto colon = message.find(": ");
  if (colon == std::string::npos || !message.ends_with(" missing") || !message.starts_with("-"))
    return message;
  std::string flag = message.substr(0, colon);
  const SettingRow* setting = find_setting(command.name, flag.substr(flag.find_first_not_of('-')));
  if (setting == nullptr) return message;
  return flag + " lacks its value: " + flag + " " + std::string(setting->value) + ", " +
         std::string(setting->words);
}

/// CLI11's "--gpu: At Most 1 required but received 2" with what belongs there.
std::string given_twice(const std::string& message, const Command& command) {
  constexpr std::string_view kSays = ": At Most 1 required but received ";
  const auto says = message.find(kSays);
  if (says == std::string::npos || !message.starts_with("-")) return message;
  const std::string flag = message.substr(0, says);
  const std::string count = message.substr(says + kSays.size());
  const SettingRow* setting = find_setting(command.name, flag.substr(flag.find_first_not_of('-')));
  if (setting == nullptr) return message;
  return flag + " is given " + (count == "2" ? "twice" : count + " times") +
         "; give it once: " + flag + " " + std::string(setting->value) + ", " +
         std::string(setting->words);
}

/// A line of a forecast with what was typed before the first flag: "predict resnet50 t4".
std::string missing_gpu(const Command& command, const Words& words, const SettingRow& gpu) {
  const auto flag = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return word.starts_with("-"); });
  const Words places(words.begin(), flag);
  const std::string begin = "stoker " + command.name + " ";
  if (places.size() > 1)
    return "the GPU is named by --gpu: " + begin + places.front() + " --gpu " +
           (places.back() == "cpu" || find_gpu(places.back()) ? places.back() : "GPU");
  // Behind flags a word may be the value of one, or the model.
  return (words.empty() ? "MODEL and --gpu are missing, as in " : "--gpu is missing, as in ") +
         begin +
         (words.empty()    ? "resnet50"
          : places.empty() ? "MODEL"
                           : places.front()) +
         " --gpu t4: " + std::string(gpu.words);
}

/// CLI11's "--gpu is required" with what belongs there.
std::string required_value(const std::string& message, const Command& command, const Words& words) {
  constexpr std::string_view kEnds = " is required";
  if (!message.ends_with(kEnds)) return message;
  const std::string name = message.substr(0, message.size() - kEnds.size());
  const auto letters = name.find_first_not_of('-');
  const SettingRow* setting =
      letters == std::string::npos ? nullptr : find_setting(command.name, name.substr(letters));
  if (setting == nullptr) return message;
  if (setting->name == "gpu" && find_setting(command.name, "model") != nullptr)
    return missing_gpu(command, words, *setting);
  return (setting->positional ? std::string(setting->value) + " is missing" : message) + ": " +
         std::string(setting->words);
}

/// Words between GPUs in a sentence.
bool joins(const std::string& word) {
  const std::string plain = simplified(word);
  return plain.empty() || plain == "vs" || plain == "versus" || plain == "or" || plain == "and";
}

std::string joined(const Words& words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

/// How words behind a flag's value are written as that value.
std::string as_value(const std::string& flag, const Words& value) {
  Words parts = value;
  std::erase_if(parts, joins);
  if (parts.empty()) return {};
  const std::string commas = flag + " " + joined(parts, ","),
                    quotes = flag + " \"" + joined(value, " ") + "\"";
  const bool pairs = std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.find('=') != std::string::npos;
  });
  if (pairs) return "; parts stand with commas: " + commas;
  const bool numbered = std::any_of(parts.begin() + 1, parts.end(), [](const std::string& part) {
    return part.find_first_not_of("0123456789") == std::string::npos;
  });
  if (flag != "--gpu" || numbered) return "; a value with blanks stands in quotes: " + quotes;
  if (parts.size() < value.size()) return "; several stand with commas: " + commas;
  return "; a name with blanks stands in quotes (" + quotes + "), several with commas (" + commas +
         ")";
}

/// How words behind the model are written.
std::string behind_model(const Command& command, const std::string& model, const Words& more) {
  if (is_script(model))
    return "; what " + model + " itself takes goes behind --: -- " + joined(more, " ");
  const bool machine = more.size() > 1 && (more[0] == "on" || more[0] == "with");
  if (machine)
    return "; the GPU is named by --gpu: stoker " + command.name + " " + model + " --gpu " +
           more.back();
  return "; a model's name has no blanks: " + model + "-" + joined(more, "-");
}

/// What was most likely meant by the words too many, from what stands before them.
std::string too_many_mean(const Command& command, const Words& words, Words extras) {
  const auto is_extra = [&](const std::string& word) {
    return std::find(extras.begin(), extras.end(), word) != extras.end();
  };
  if (words.size() < 2) return {};
  const auto first = std::find_if(words.begin() + 1, words.end(), is_extra);
  if (first == words.end()) return {};
  const auto end = std::find_if_not(first, words.end(), is_extra);
  Words run(first, end);
  const std::string& before = *(first - 1);
  if (command.rest != nullptr && command.rest_words == "COMMAND" &&
      (simplified(before).starts_with("python") || is_script(run.front())))
    return "; the command stands behind --: -- " + before + " " + joined(run, " ");
  const auto place = [&](const std::string& flag) {
    return find_setting(command.name, flag.substr(std::min(flag.size(), std::size_t{2})));
  };
  if (before.starts_with("--") && before.find('=') == std::string::npos) {
    if (before == "--qlora")
      return "; its rank goes with --lora: --lora " + run.front() + " --qlora";
    return "; " + before + " takes no value";
  }
  const bool one_word = before.starts_with("--");
  const std::string flag = one_word                    ? before.substr(0, before.find('='))
                           : first - words.begin() > 1 ? *(first - 2)
                                                       : std::string();
  if (flag.starts_with("--") && place(flag) != nullptr) {
    run.insert(run.begin(), one_word ? before.substr(before.find('=') + 1) : before);
    return as_value(flag, run);
  }
  if (command.name == "gpus" && flag.empty())
    return "; a name with blanks stands in quotes: stoker gpus \"" + before + " " +
           joined(run, " ") + "\"";
  const bool takes_model = find_setting(command.name, "model") != nullptr;
  return takes_model && !flag.starts_with("-") ? behind_model(command, before, run) : std::string();
}

/// CLI11's "The following argument was not expected: t4" (or "arguments were": t4 a100) in a
/// sentence with what is taken.
std::string unexpected_word(const std::string& message, const Command& command,
                            const Words& words) {
  const auto colon = message.find(": ");
  if (!message.starts_with("The following argument") || colon == std::string::npos) return message;
  std::string places;
  for (const SettingRow* setting : settings_of(command.name)) {
    if (setting->positional) places += " " + std::string(setting->value);
  }
  // The parser lists several from the end.
  Words extras = split(message.substr(colon + 2), ' ');
  if (message.starts_with("The following arguments")) std::reverse(extras.begin(), extras.end());
  return (extras.size() > 1 ? "words too many: " : "one word too many: ") + joined(extras, " ") +
         "; stoker " + command.name + " takes" +
         (places.empty() ? " flags alone" : places + " and flags") +
         too_many_mean(command, words, extras);
}

}  // namespace

Error refusal_of(const std::string& message, const Command& command,
                 const std::vector<std::string>& words) {
  // "python train.py --amp": the rest is wrong because of the first word.
  for (std::size_t i = 0; command.rest_words == "ARGUMENTS" && i + 1 < words.size(); ++i) {
    if (simplified(words[i]).starts_with("python") && is_script(words[i + 1]))
      return {ErrorCode::kUsage,
              "the script stands without " + words[i] + ", what it takes behind --: stoker " +
                  command.name + " " + words[i + 1] + " --gpu GPU -- ARGUMENTS (stoker " +
                  command.name + " --help)",
              {}};
  }
  if (auto unknown = unknown_flag(command, words)) return *unknown;
  if (auto dash = one_dash(command, words)) return *dash;
  if (auto letter = unknown_letter(command, words)) return *letter;
  const std::string line = message.substr(0, message.find('\n'));
  const std::string value = missing_value(unreadable_value(line, command), command);
  const std::string sentence =
      unexpected_word(given_twice(required_value(value, command, words), command), command, words);
  return {ErrorCode::kUsage, sentence + " (stoker " + command.name + " --help)", {}};
}

}  // namespace stoker::cli
