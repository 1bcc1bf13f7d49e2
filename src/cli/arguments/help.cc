#include "cli/arguments/help.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "report/text/screen.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kWordsAt = 28, kColumns = 100;
/// Lines of a verb's short help.
constexpr std::size_t kShortHelp = 15;

bool takes_a_value(const SettingRow& s) {
  return s.type != SettingType::kSwitch && s.type != SettingType::kPair;
}

std::string usage_line(const Command& command, const std::vector<const SettingRow*>& settings) {
  std::string line = "Usage: stoker " + command.name;
  for (const SettingRow* s : settings) {
    if (s->positional) line += s->required ? " " + usage_of(*s) : " [" + usage_of(*s) + "]";
  }
  for (const SettingRow* s : settings) {
    if (s->required && !s->positional) line += " " + usage_of(*s);
  }
  line += " [FLAGS]";
  if (command.rest != nullptr) line += " [-- " + command.rest_words + " ...]";
  return line + "\n";
}

std::string lines_of(const std::vector<const SettingRow*>& settings) {
  std::string text;
  for (const SettingRow* s : settings)
    text += help_line(usage_of(*s), help_words(*s, HelpPart::kAll));
  return text;
}

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// The examples without what is said beside them: "Example: ..." and the lines indented as far.
std::string examples_alone(const std::string& examples) {
  constexpr std::size_t kMost = 2;
  std::string text;
  for (const std::string& line : split(examples, '\n')) {
    const bool example = line.starts_with("Example:") || line.starts_with("         stoker");
    if (example && count_lines(text) < kMost) text += line + "\n";
  }
  return text;
}

/// Under their headings, in the order in which headings come first.
std::string grouped_lines(const std::vector<const SettingRow*>& settings) {
  std::vector<std::string_view> groups;
  for (const SettingRow* s : settings) {
    if (std::find(groups.begin(), groups.end(), s->group) == groups.end())
      groups.push_back(s->group);
  }
  std::string text;
  for (const std::string_view group : groups) {
    std::vector<const SettingRow*> members;
    std::copy_if(settings.begin(), settings.end(), std::back_inserter(members),
                 [&](const SettingRow* s) { return s->group == group; });
    text += "\n" + (group.empty() ? std::string("Flags") : std::string(group)) + ":\n" +
            lines_of(members);
  }
  return text;
}

}  // namespace

std::string usage_of(const SettingRow& s) {
  if (s.positional) return std::string(s.value);
  std::string text = s.letter != 0 ? std::string("-") + s.letter + ", " : "";
  text += (s.type == SettingType::kPair ? "--[no-]" : "--") + std::string(s.name);
  return takes_a_value(s) ? text + " " + std::string(s.value) : text;
}

std::string help_words(const SettingRow& s, HelpPart part) {
  std::string text(s.words);
  if (s.devices == SettingDevices::kCpu) text = "of a CPU: " + text;
  if (!s.fallback.empty()) text += "; default: " + std::string(s.fallback);
  if (part == HelpPart::kAll && !s.aliases.empty()) {
    text += "; also";
    for (const std::string& alias : names_in(s.aliases)) text += " --" + alias;
  }
  return text;
}

std::string usage_text(const Command& command) {
  return usage_line(command, settings_of(command.name));
}

std::string short_line(const std::string& left, const std::string& words) {
  constexpr std::string_view kCut = " ...";
  const std::size_t columns = layout::columns_within(kColumns);
  std::string line = "  " + left;
  line.resize(std::max(line.size() + 1, kWordsAt), ' ');
  const std::size_t room = columns > line.size() ? columns - line.size() : 0;
  if (words.size() <= room) return line + words + "\n";
  // Whole phrases where one has room, else whole words.
  std::size_t end = std::string::npos;
  for (const std::string_view mark : {"; ", ", ", " "}) {
    const std::size_t at = words.rfind(mark, room > kCut.size() ? room - kCut.size() : 0);
    if (at == std::string::npos || at == 0 || (mark != " " && at < room / 2)) continue;
    end = at;
    break;
  }
  return line + words.substr(0, end == std::string::npos ? room : end) + std::string(kCut) + "\n";
}

std::string help_line(const std::string& left, const std::string& words) {
  const std::size_t columns = layout::columns_within(kColumns);
  std::string text = "  " + left, line = text;
  if (line.size() + 1 > kWordsAt) {
    text += "\n";
    line.clear();
  } else {
    text.clear();
  }
  line.resize(kWordsAt, ' ');
  bool first = true;
  std::istringstream stream(words);
  for (std::string word; stream >> word; first = false) {
    if (!first && line.size() + 1 + word.size() > columns) {
      text += line + "\n";
      line.assign(kWordsAt, ' ');
      first = true;
    }
    line += (first ? "" : " ") + word;
  }
  return text + line + "\n";
}

std::string short_help(std::span<const Section> sections) {
  std::string text =
      "Keeps GPUs fed: says before a GPU is rented how a training job will run, and why.\n"
      "\n"
      "  stoker predict resnet50 --gpu t4 --batch 64         does it fit, how fast is it?\n"
      "  stoker plan resnet50 --gpu t4 --data ./images       the best settings, and what limits\n"
      "  stoker plan train.py --gpu a100-40gb -- --epochs 9  the same of a script, unchanged\n"
      "  stoker probe ./images                               what the data costs\n"
      "  stoker watch -- python train.py                     why is it slow?\n"
      "  stoker sweep --vary lr=0.1,0.01 -- python train.py --lr {lr}\n"
      "\n";
  std::string line = "Verbs:";
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      if (line.size() + 1 + command.name.size() > layout::columns_within(kColumns)) {
        text += line + "\n";
        line = "      ";
      }
      line += " " + command.name;
    }
  }
  return text + line +
         "\n\n"
         "stoker help VERB shows a verb's first flags, VERB --help-all all of them, stoker "
         "--help-all\n"
         "every verb in a line. Any verb: -q without what it rests on, --color "
         "auto|always|never.\n";
}

std::string main_help(std::span<const Section> sections) {
  std::string text =
      "Keeps GPUs fed: says before a GPU is rented how a training job will run, and why.\n"
      "Usage: stoker VERB ...\n";
  for (const Section& section : sections) {
    text += "\n" + section.heading + ":\n";
    for (const Command& command : section.commands) {
      std::string left = "  " + command.name;
      left.resize(std::max<std::size_t>(left.size() + 1, 15), ' ');
      text += left + command.summary + "\n";
    }
  }
  return text +
         "\nstoker VERB --help shows the flags that matter first, --help-all all of them; stoker\n"
         "--version the version. Any verb: -q leaves out what its answer rests on, --color auto,\n"
         "always or never. Exit codes: 0 fine, 1 the answer is no, 2 usage, 3 bad input.\n";
}

std::string verb_help(const Command& command, HelpPart part) {
  const std::vector<const SettingRow*> settings = settings_of(command.name);
  std::vector<const SettingRow*> placed, first, all;
  for (const SettingRow* s : settings) {
    if (s->positional) placed.push_back(s);
    else all.push_back(s);
    if (!s->positional && matters_first(*s, command.name)) first.push_back(s);
  }
  std::string text = command.summary + "\n" + usage_line(command, settings);
  if (part == HelpPart::kAll) {
    if (!placed.empty()) text += "\n" + lines_of(placed);
    text += grouped_lines(all);
    if (command.examples.empty()) return text;
    return text + "\n" + command.examples + (command.examples.ends_with("\n") ? "" : "\n");
  }
  text += "\n";
  for (const SettingRow* s : placed) text += short_line(usage_of(*s), help_words(*s, part));
  const std::string examples = examples_alone(command.examples);
  const std::size_t around = count_lines(text) + count_lines(examples) + 1;
  const std::size_t room = kShortHelp > around ? kShortHelp - around : 1;
  if (first.size() > room) first.resize(room);
  for (const SettingRow* s : first) text += short_line(usage_of(*s), help_words(*s, part));
  if (first.size() < all.size())
    text += std::to_string(all.size() - first.size()) + " more flags: stoker " + command.name +
            " --help-all\n";
  return text + examples;
}

}  // namespace stoker::cli
