#include "cli/arguments/typed_names.h"

#include <algorithm>
#include <cctype>

#include "cli/arguments/field_words.h"
#include "scenario/settings/settings.h"

namespace stoker::cli {
namespace {

bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

/// "--workers" for "--num_workers"; "--no-pin" for "--no-pin-memory"; empty for what is none of the
/// verb's settings.
std::string our_name(const std::vector<const SettingRow*>& settings, const std::string& typed) {
  for (const SettingRow* setting : settings) {
    if (!answers_to(*setting, typed)) continue;
    std::string name = typed.starts_with("--") ? typed.substr(2) : std::string(setting->name);
    std::replace(name.begin(), name.end(), '_', '-');
    const std::vector<std::string> aliases = names_in(setting->aliases);
    const bool plain =
        name == setting->name || std::find(aliases.begin(), aliases.end(), name) != aliases.end();
    return (plain ? "--" : "--no-") + std::string(setting->name);
  }
  return {};
}

std::string replaced(const std::string& sentence, const std::string& ours,
                     const std::string& typed) {
  std::string text;
  std::size_t from = 0;
  for (;;) {
    const std::size_t at = sentence.find(ours, from);
    if (at == std::string::npos) return text + sentence.substr(from);
    const std::size_t end = at + ours.size();
    const bool whole = (at == 0 || !is_name_letter(sentence[at - 1])) &&
                       (end == sentence.size() || !is_name_letter(sentence[end]));
    text += sentence.substr(from, at - from) + (whole ? typed : ours);
    from = end;
  }
}

}  // namespace

std::string TypedWords::as_typed(const std::string& sentence) const {
  std::string text = sentence;
  for (const auto& [ours, name] : typed) text = replaced(text, ours, name);
  return text;
}

Result<TypedWords> in_our_names(std::string_view verb, const std::vector<std::string>& words) {
  const std::vector<const SettingRow*> settings = settings_of(verb);
  TypedWords result;
  std::map<std::string, std::string> seen;  // by our name
  bool flags_ended = false;
  for (const std::string& word : words) {
    flags_ended = flags_ended || word == "--";
    const auto equals = std::min(word.find('='), word.size());
    const std::string typed = word.substr(0, equals);
    const std::string own =
        flags_ended || !word.starts_with("-") ? std::string() : our_name(settings, typed);
    const auto field = own.empty() && !flags_ended && equals == word.size()
                           ? switch_of_the_field(verb, typed)
                           : std::nullopt;
    const std::string ours = field ? "--" + std::string(field->setting) : own;
    // Programs say no to a switch, too; it leaves the setting as it is.
    if (ours.empty() && !flags_ended && typed.starts_with("--no-") &&
        switch_of_the_field(verb, "--" + typed.substr(5)))
      continue;
    if (ours.empty()) {
      result.words.push_back(word);
      continue;
    }
    const auto [first, is_new] = seen.emplace(ours, typed);
    if (!is_new && first->second != typed)
      return fail(ErrorCode::kUsage,
                  "names the same setting as " + first->second + "; give one of them", typed);
    if (typed != ours && typed.starts_with("--")) result.typed[ours] = typed;
    if (field) {
      result.words.push_back(ours + "=" + std::string(field->value));
      continue;
    }
    result.words.push_back((typed.starts_with("--") ? ours : typed) + word.substr(equals));
  }
  for (const auto& [ours, typed] : seen) {
    const auto opposite = seen.find("--no-" + ours.substr(2));
    if (opposite == seen.end()) continue;
    return fail(ErrorCode::kUsage, "contradicts " + opposite->second + "; give one of them", typed);
  }
  return result;
}

}  // namespace stoker::cli
