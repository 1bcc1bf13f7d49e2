#include "cli/arguments/completion.h"

#include <array>
#include <string>
#include <vector>

namespace stoker::cli {
namespace {

/// What may stand behind a flag, or in a place.
enum class Completes { kNothing, kNames, kFiles, kFree };

Completes completes(const SettingRow& s) {
  if (s.type == SettingType::kSwitch || s.type == SettingType::kPair) return Completes::kNothing;
  if (!s.values.empty()) return Completes::kNames;
  constexpr std::array<std::string_view, 9> kFileValues{"FILE",  "PATH", "MACHINE", "GPU", "HOST",
                                                        "MODEL", "SPEC", "WHAT",    "ROWS"};
  for (const std::string_view part : kFileValues) {
    if (s.value.starts_with(part)) return Completes::kFiles;
  }
  return Completes::kFree;
}

/// What is offered beside files for such a value; empty: files alone.
std::string known_for(const SettingRow& s, const KnownNames& known) {
  if (s.value.starts_with("GPU")) return known.gpus;
  return s.value.starts_with("MODEL") ? known.models : std::string();
}

template <class Visit>
void each_command(std::span<const Section> sections, const Visit& visit) {
  for (const Section& section : sections) {
    for (const Command& command : section.commands) visit(command);
  }
}

/// Calls with every setting of every verb.
template <class Visit>
void each_setting(std::span<const Section> sections, const Visit& visit) {
  each_command(sections, [&](const Command& c) {
    for (const SettingRow* s : settings_of(c.name)) visit(c, *s);
  });
}

/// The flags by our names and those of the ecosystem, with the negative of pairs alone: "--no-json"
/// says nothing.
std::vector<std::string> offered_flags(const SettingRow& s) {
  std::vector<std::string> flags = flags_of(s);
  if (s.type == SettingType::kSwitch)
    std::erase_if(flags, [](const std::string& flag) { return flag.starts_with("--no-"); });
  return flags;
}

/// Whether the screen's flags are this verb's, too: those of Python's verbs are Python's alone.
bool takes_colour(const Command& c) { return c.run != nullptr; }
/// A verb with a --quiet of its own keeps it.
bool takes_quiet(const Command& c) {
  return takes_colour(c) && find_setting(c.name, "quiet") == nullptr;
}

/// Flags that are in no table of settings.
std::vector<std::string> flags_of_all(const Command& c) {
  std::vector<std::string> flags{"--help", "--help-all"};
  if (takes_colour(c)) flags.emplace_back("--color");
  if (takes_quiet(c)) flags.insert(flags.end(), {"--quiet", "-q"});
  return flags;
}
constexpr std::string_view kColours = "auto always never";

std::string offered_words(const Command& c) {
  std::string text;
  for (const std::string& flag : flags_of_all(c)) text += (text.empty() ? "" : " ") + flag;
  for (const SettingRow* s : settings_of(c.name)) {
    for (const std::string& flag : offered_flags(*s)) text += " " + flag;
  }
  return text;
}

std::string all_verbs(std::span<const Section> sections) {
  std::string text;
  each_command(sections, [&](const Command& c) { text += (text.empty() ? "" : " ") + c.name; });
  return text;
}

/// Adds "plan --gpu"|"plan -g" to a pattern of bash's case.
void add_pattern(const Command& command, const SettingRow& s, std::string& pattern) {
  for (const std::string& flag : flags_of(s))
    pattern += (pattern.empty() ? "\"" : "|\"") + command.name + " " + flag + "\"";
}

/// The pattern of the settings whose value is completed in this way.
std::string bash_pattern(std::span<const Section> sections, Completes way) {
  std::string pattern;
  each_setting(sections, [&](const Command& c, const SettingRow& s) {
    if (completes(s) == way && (way != Completes::kFiles || !s.value.starts_with("GPU")))
      add_pattern(c, s, pattern);
  });
  return pattern;
}

std::string bash_gpus(std::span<const Section> sections, const KnownNames& known) {
  std::string pattern;
  each_setting(sections, [&](const Command& c, const SettingRow& s) {
    const bool gpu = s.value.starts_with("GPU") && completes(s) == Completes::kFiles;
    if (gpu && !s.positional) add_pattern(c, s, pattern);
  });
  return "    " + pattern + ") COMPREPLY=($(compgen -W \"" + known.gpus +
         "\" -- \"$cur\"; compgen -f -- \"$cur\" || :)); return ;;\n";
}

std::string bash_names(std::span<const Section> sections) {
  std::string text;
  each_setting(sections, [&](const Command& c, const SettingRow& s) {
    if (completes(s) != Completes::kNames || s.positional) return;
    std::string pattern;
    add_pattern(c, s, pattern);
    text += "    " + pattern + ") words=\"" + std::string(s.values) + "\" ;;\n";
  });
  return text;
}

/// Text within single quotes of zsh and fish.
std::string quoted(std::string_view text, std::string_view escaped) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (escaped.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result + "'";
}

std::string zsh_files(const SettingRow& s, const KnownNames& known) {
  const std::string names = known_for(s, known);
  if (names.empty()) return ":_files";
  return ":{_alternative \"names:" + std::string(s.value) + ":(" + names +
         ")\" \"files:file:_files\"}";
}

std::string zsh_action(const SettingRow& s, const KnownNames& known) {
  switch (completes(s)) {
    case Completes::kNames:
      return ":" + std::string(s.value) + ":(" + std::string(s.values) + ")";
    case Completes::kFiles:
      return ":" + std::string(s.value) + zsh_files(s, known);
    case Completes::kFree:
      return ":" + std::string(s.value) + ": ";
    case Completes::kNothing:
      break;
  }
  return "";
}

std::string zsh_words(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == '[' ? '(' : c == ']' ? ')' : c;
  return text;
}

}  // namespace

std::string bash_completion(std::span<const Section> sections, const KnownNames& known) {
  std::string text =
      "# Completion of stoker for bash: source <(stoker completion bash)\n"
      "_stoker() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
      "verb=${COMP_WORDS[1]}\n"
      "  local words=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      all_verbs(sections) +
      " help --help --help-all --version\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  if [ \"$verb\" = help ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      all_verbs(sections) +
      " --man\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$verb $prev\" in\n"
      "    *\" --color\") words=\"" +
      std::string(kColours) + "\" ;;\n" + bash_names(sections) + bash_gpus(sections, known) +
      "    " + bash_pattern(sections, Completes::kFiles) +
      ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
      "    " +
      bash_pattern(sections, Completes::kFree) +
      ") return ;;\n"
      "  esac\n"
      "  if [ -z \"$words\" ]; then\n"
      "    case \"$verb\" in\n";
  each_command(sections, [&](const Command& c) {
    std::string words = offered_words(c);
    for (const SettingRow* s : settings_of(c.name)) {
      if (!s->positional) continue;
      const std::string names = s->values.empty() ? known_for(*s, known) : std::string(s->values);
      if (!names.empty()) words += " " + names;
    }
    text += "      " + c.name + ") words=\"" + words + "\" ;;\n";
  });
  return text +
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  case \"$cur\" in\n"
         "    -*) ;;\n"
         "    *) [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _stoker stoker\n";
}

std::string zsh_completion(std::span<const Section> sections, const KnownNames& known) {
  std::string text =
      "#compdef stoker\n"
      "# Completion of stoker for zsh: stoker completion zsh > a folder of $fpath/_stoker\n"
      "_stoker() {\n"
      "  local -a verbs\n"
      "  verbs=(\n";
  each_command(sections, [&](const Command& c) {
    text += "    " + quoted(c.name + ":" + c.summary, "") + "\n";
  });
  text +=
      "    'help:what a verb is for, and its first flags'\n"
      "  )\n"
      "  if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $verb in\n";
  each_command(sections, [&](const Command& c) {
    text += "    " + c.name + ")\n      _arguments \\\n";
    for (const SettingRow* s : settings_of(c.name)) {
      if (s->positional) {
        const bool names = completes(*s) == Completes::kNames;
        text += "        " +
                quoted((s->type == SettingType::kList ? "*:" : ":") + std::string(s->value) +
                           (names ? ":(" + std::string(s->values) + ")" : zsh_files(*s, known)),
                       "") +
                " \\\n";
        continue;
      }
      for (const std::string& flag : offered_flags(*s)) {
        text += "        " +
                quoted((s->type == SettingType::kList ? "*" : "") + flag + "[" +
                           zsh_words(s->words) + "]" + zsh_action(*s, known),
                       "") +
                " \\\n";
      }
    }
    if (takes_quiet(c))
      text += "        '(-q --quiet)'{-q,--quiet}'[without what it rests on]' \\\n";
    if (takes_colour(c))
      text += "        '--color[colour for verdicts]:WHEN:(" + std::string(kColours) + ")' \\\n";
    text += "        '--help[what matters first]' '--help-all[all flags]' ;;\n";
  });
  // As a file of $fpath it is called by its name; sourced, it has to be registered.
  return text +
         "  esac\n}\n"
         "if [[ ${funcstack[1]} == _stoker ]]; then _stoker \"$@\"; else compdef _stoker stoker; "
         "fi\n";
}

std::string fish_completion(std::span<const Section> sections, const KnownNames& known) {
  std::string text =
      "# Completion of stoker for fish: stoker completion fish > "
      "~/.config/fish/completions/stoker.fish\n";
  each_command(sections, [&](const Command& c) {
    text += "complete -c stoker -n __fish_use_subcommand -f -a " + c.name + " -d " +
            quoted(c.summary, "\\") + "\n";
  });
  text +=
      "complete -c stoker -n __fish_use_subcommand -f -a help -d 'what a verb is for, and its "
      "first "
      "flags'\n"
      "complete -c stoker -n '__fish_seen_subcommand_from help' -f -a '" +
      all_verbs(sections) +
      "'\n"
      "complete -c stoker -n 'not __fish_use_subcommand' -l color -x -a '" +
      std::string(kColours) + "' -d 'colour for verdicts'\n";
  each_command(sections, [&](const Command& c) {
    const std::string head = "complete -c stoker -n '__fish_seen_subcommand_from " + c.name + "'";
    if (takes_quiet(c)) text += head + " -s q -l quiet -d 'without what it rests on'\n";
    for (const SettingRow* s : settings_of(c.name)) {
      const Completes way = completes(*s);
      const std::string offered =
          way == Completes::kNames ? std::string(s->values) : known_for(*s, known);
      const std::string names = offered.empty() ? offered : " -a " + quoted(offered, "\\");
      if (s->positional) {
        const std::string_view alone = way == Completes::kNames ? " -f" : "";
        if (!names.empty()) text += head + std::string(alone) + names + "\n";
        continue;
      }
      const std::string needs = way == Completes::kNothing ? ""
                                : way == Completes::kFiles ? " -r"
                                                           : " -x";
      for (const std::string& flag : offered_flags(*s)) {
        const bool letter = !flag.starts_with("--");
        text += head + (letter ? " -s " + flag.substr(1) : " -l " + flag.substr(2)) + needs +
                names + " -d " + quoted(s->words, "\\") + "\n";
      }
    }
  });
  return text;
}

}  // namespace stoker::cli
