#include "scenario/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "scenario/settings_table.h"

namespace stoker {
namespace {

bool holds_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string flag(std::string_view name) { return "--" + std::string(name); }

bool can_be_negated(const SettingRow& s) {
  return s.type == SettingType::kSwitch || s.type == SettingType::kPair;
}

/// "1" of --gpus and --nodes: what a CPU has too.
bool says_one(const Binding& binding) {
  if (binding.name != "gpus" && binding.name != "nodes") return false;
  if (const auto* text = std::get_if<std::string*>(&binding.target)) return **text == "1";
  const auto* number = std::get_if<std::optional<std::int64_t>*>(&binding.target);
  return number != nullptr && (*number)->value_or(1) <= 1;
}

std::string bound_text(double bound) { return with_commas(static_cast<std::int64_t>(bound)); }

/// "must be between 1 and 1,024"; of numbers that are not whole the ends are said in their own way.
std::string range_words(const SettingRange& r, bool whole) {
  const bool open = std::isinf(r.high);
  if (open && r.above_low) return "must be positive";
  if (open) return "must be at least " + bound_text(r.low);
  if (r.above_low)
    return "must be above " + bound_text(r.low) + " and at most " + bound_text(r.high);
  if (whole) return "must be between " + bound_text(r.low) + " and " + bound_text(r.high);
  return "must lie between " + bound_text(r.low) + " and " + bound_text(r.high);
}

bool in_range(const SettingRange& r, double value) {
  return (r.above_low ? value > r.low : value >= r.low) && value <= r.high;
}

Status check_range(const SettingRow& setting, const Binding& binding) {
  if (!setting.range) return {};
  const SettingRange& range = *setting.range;
  if (const auto* whole = std::get_if<std::optional<std::int64_t>*>(&binding.target)) {
    const std::optional<std::int64_t>& value = **whole;
    if (!value || in_range(range, static_cast<double>(*value))) return {};
    const std::string what = std::isinf(range.high) ? "" : ", not " + std::to_string(*value);
    return fail(ErrorCode::kBadInput, range_words(range, true) + what, flag(setting.name));
  }
  if (const auto* number = std::get_if<std::optional<double>*>(&binding.target)) {
    if (!**number || in_range(range, ***number)) return {};
    return fail(ErrorCode::kBadInput, range_words(range, false), flag(setting.name));
  }
  return {};
}

/// Spelling is taken as the readers of these names take it: letters and digits alone count.
Status check_names(const SettingRow& setting, const Binding& binding) {
  const auto* text = std::get_if<std::string*>(&binding.target);
  if (setting.values.empty() || text == nullptr || (*text)->empty()) return {};
  const std::vector<std::string> known = names_in(setting.values);
  for (const std::string& name : split(**text, ',')) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& k) {
      return simplified(k) == simplified(name);
    });
    if (found) continue;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    const std::string noun(setting.noun.empty() ? setting.name : setting.noun);
    return fail(ErrorCode::kUsage,
                "unknown " + noun + " \"" + name + "\"" + suggestion(name, known) +
                    " (known: " + list + ")",
                flag_of(setting));
  }
  return {};
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::span<const SettingRow> all_settings() { return settings_table(); }

const SettingRow* find_setting(std::string_view verb, std::string_view name) {
  for (const SettingRow& setting : all_settings()) {
    if (setting.name == name && holds_word(setting.verbs, verb)) return &setting;
  }
  return nullptr;
}

std::vector<const SettingRow*> settings_of(std::string_view verb) {
  std::vector<const SettingRow*> found;
  for (const SettingRow& setting : all_settings()) {
    if (holds_word(setting.verbs, verb)) found.push_back(&setting);
  }
  return found;
}

bool matters_first(const SettingRow& setting, std::string_view verb) {
  return setting.required || setting.positional || holds_word(setting.first, verb);
}

std::vector<std::string> names_in(std::string_view list) {
  return list.empty() ? std::vector<std::string>{} : split(list, ' ');
}

std::string flag_of(const SettingRow& setting) {
  return setting.positional ? std::string(setting.name) : flag(setting.name);
}

std::vector<std::string> flags_of(const SettingRow& setting) {
  if (setting.positional) return {};
  std::vector<std::string> flags{flag(setting.name)};
  for (const std::string& alias : names_in(setting.aliases)) flags.push_back(flag(alias));
  if (setting.letter != 0) flags.push_back(std::string("-") + setting.letter);
  if (!can_be_negated(setting)) return flags;
  flags.push_back(flag("no-" + std::string(setting.name)));
  for (const std::string& alias : names_in(setting.aliases)) flags.push_back(flag("no-" + alias));
  return flags;
}

bool answers_to(const SettingRow& setting, std::string_view typed) {
  std::string name(typed);
  if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');
  const std::vector<std::string> flags = flags_of(setting);
  const auto is_flag = [&](const std::string& flag_name) {
    return std::find(flags.begin(), flags.end(), flag_name) != flags.end();
  };
  return is_flag(name) || (name.starts_with("--no-") && is_flag("--" + name.substr(5)));
}

bool was_given(const Binding& binding) {
  struct Holds {
    bool operator()(const bool* on) const { return *on; }
    bool operator()(const std::optional<bool>* on) const { return on->has_value(); }
    bool operator()(const std::string* text) const { return !text->empty(); }
    bool operator()(const std::vector<std::string>* list) const { return !list->empty(); }
    bool operator()(const std::optional<std::int64_t>* number) const { return number->has_value(); }
    bool operator()(const std::optional<double>* number) const { return number->has_value(); }
  };
  return std::visit(Holds{}, binding.target);
}

Status check_values(std::string_view verb, std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    const SettingRow* setting = find_setting(verb, binding.name);
    if (setting == nullptr) continue;
    if (auto s = check_range(*setting, binding); !s) return s;
    if (auto s = check_names(*setting, binding); !s) return s;
  }
  return {};
}

Status check_devices(std::string_view verb, std::span<const Binding> bindings, bool cpu,
                     std::string_view device) {
  for (const Binding& binding : bindings) {
    const SettingRow* setting = find_setting(verb, binding.name);
    if (setting == nullptr || !was_given(binding) || says_one(binding)) continue;
    if (cpu && setting->devices == SettingDevices::kGpu) {
      return fail(ErrorCode::kUsage,
                  "is of GPUs, and " + std::string(device) + " is a CPU; leave it out",
                  flag(setting->name));
    }
    if (!cpu && setting->devices == SettingDevices::kCpu) {
      return fail(ErrorCode::kUsage,
                  "is of CPUs, and " + std::string(device) +
                      " is a GPU; leave it out (cores around the GPU: --host cores=16)",
                  flag(setting->name));
    }
  }
  return {};
}

Status refuse_given(std::span<const Binding> bindings, std::span<const std::string_view> names,
                    std::string_view why) {
  for (const Binding& binding : bindings) {
    if (contains(names, binding.name) && was_given(binding))
      return fail(ErrorCode::kUsage, std::string(why), flag(binding.name));
  }
  return {};
}

Status refuse_all_but(std::span<const Binding> bindings, std::span<const std::string_view> used,
                      std::string_view why) {
  for (const Binding& binding : bindings) {
    if (!contains(used, binding.name) && was_given(binding))
      return fail(ErrorCode::kUsage, std::string(why), flag(binding.name));
  }
  return {};
}

}  // namespace stoker
