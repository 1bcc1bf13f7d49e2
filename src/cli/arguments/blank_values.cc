#include "cli/arguments/blank_values.h"

#include <algorithm>

#include "base/text.h"
#include "scenario/settings/settings.h"
#include "system/system_files.h"

namespace stoker::cli {
namespace {

bool takes_value(const SettingRow& setting) {
  return setting.type != SettingType::kSwitch && setting.type != SettingType::kPair;
}

const SettingRow* setting_typed(const std::vector<const SettingRow*>& settings,
                                const std::string& flag) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const SettingRow* setting) {
    return answers_to(*setting, flag);
  });
  return found == settings.end() ? nullptr : *found;
}

/// "; give KIND (the storage that ...), or leave it out".
std::string cure_of(const SettingRow& setting) {
  const std::string takes = setting.value.empty() ? "a value" : std::string(setting.value);
  std::string cure = "; give " + takes + " (" + std::string(setting.words) + ")";
  if (!setting.required) cure += ", or leave it out";
  return cure;
}

Status check_value(const SettingRow& setting, const std::string& flag, const std::string& value) {
  if (trimmed(value).empty())
    return fail(ErrorCode::kUsage, "is empty (is a variable unset?)" + cure_of(setting), flag);
  if (setting.type != SettingType::kList || setting.keeps_commas) return {};
  const auto parts = split(value, ',');
  const bool all =
      std::ranges::none_of(parts, [](const std::string& part) { return trimmed(part).empty(); });
  if (all) return {};
  return fail(ErrorCode::kUsage,
              "\"" + value + "\" has an empty value between its commas; leave the comma out", flag);
}

}  // namespace

Status refuse_blank_values(std::string_view verb, const std::vector<std::string>& words) {
  const std::vector<const SettingRow*> settings = settings_of(verb);
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (trimmed(word).empty())
      return fail(ErrorCode::kUsage,
                  "has an empty word, where a variable may be unset; leave it out (stoker " +
                      std::string(verb) + " --help)",
                  "stoker " + std::string(verb));
    if (!word.starts_with("-")) continue;
    const auto equals = std::min(word.find('='), word.size());
    const std::string flag = word.substr(0, equals);
    const SettingRow* setting = setting_typed(settings, flag);
    if (setting == nullptr || !takes_value(*setting) || flag.starts_with("--no-")) continue;
    if (equals < word.size()) TRY(check_value(*setting, flag, word.substr(equals + 1)));
    else if (i + 1 < words.size() && words[i + 1] != "--")
      TRY(check_value(*setting, flag, words[++i]));
  }
  return {};
}

}  // namespace stoker::cli
