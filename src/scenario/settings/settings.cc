#include "scenario/settings/settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "scenario/settings/settings_table.h"

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

Status check_number(const SettingRow& setting, const Binding& binding) {
  if (const auto* whole = std::get_if<std::optional<std::int64_t>*>(&binding.target))
    return **whole ? check_range(setting, ***whole, flag(setting.name)) : Status{};
  if (const auto* number = std::get_if<std::optional<double>*>(&binding.target))
    return **number ? check_range(setting, ***number, flag(setting.name)) : Status{};
  return {};
}

/// What `name` is called here; itself where nobody calls a value so.
std::string our_value(const SettingRow& setting, const std::string& name) {
  for (const std::string& pair : names_in(setting.value_aliases)) {
    const auto equals = pair.find('=');
    if (simplified(pair.substr(0, equals)) == simplified(name)) return pair.substr(equals + 1);
  }
  return name;
}

/// Arithmetic in eight bits or four, parts of a model on several GPUs: what no spelling of a known
/// name is near to.
bool is_not_modelled(std::string_view noun, std::string_view name) {
  const std::string plain = simplified(name);
  constexpr std::string_view kFewBits[] = {"fp8", "float8", "int8", "fp4", "float4", "int4", "nf4"};
  constexpr std::string_view kParts[] = {"tensor", "pipeline", "sequence", "context", "expert"};
  const auto holds_one = [&](std::span<const std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
      return plain.find(word) != std::string::npos;
    });
  };
  if (noun == "kind of parallelism") return holds_one(kParts) || plain == "tp" || plain == "pp";
  return noun == "precision" && holds_one(kFewBits);
}

/// Spelling is taken as the readers of these names take it: letters and digits alone count.
Status check_names(const SettingRow& setting, const Binding& binding) {
  const auto* text = std::get_if<std::string*>(&binding.target);
  if (setting.values.empty() || text == nullptr || (*text)->empty()) return {};
  const std::vector<std::string> known = names_in(setting.values);
  const std::vector<std::string> names =
      setting.several ? split(**text, ',') : std::vector<std::string>{**text};
  for (const std::string& name : names) {
    const bool found = std::any_of(known.begin(), known.end(), [&](const std::string& k) {
      return simplified(k) == simplified(name);
    });
    if (found) continue;
    std::string list;
    for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
    const std::string noun(setting.noun.empty() ? setting.name : setting.noun);
    return fail(ErrorCode::kUsage,
                (is_not_modelled(noun, name)
                     ? "\"" + name + "\" is not modelled"
                     : "unknown " + noun + " \"" + name + "\"" + suggestion(name, known)) +
                    " (known: " + list + ")",
                flag_of(setting));
  }
  return {};
}

/// How the command line names what was given: "--no-pin" for a pair that was switched off.
std::string given_flag(std::string_view verb, const Binding& binding) {
  const auto* pair = std::get_if<std::optional<bool>*>(&binding.target);
  if (pair != nullptr && **pair == false) return flag("no-" + std::string(binding.name));
  const SettingRow* setting = find_setting(verb, binding.name);
  return setting != nullptr ? flag_of(*setting) : flag(binding.name);
}

/// Refuses the first that was given and that `unwanted` holds for.
template <class Unwanted>
Status refuse_if(std::string_view verb, std::span<const Binding> bindings, const Unwanted& unwanted,
                 std::string_view why) {
  for (const Binding& binding : bindings) {
    if (was_given(binding) && unwanted(binding.name))
      return fail(ErrorCode::kUsage, std::string(why), given_flag(verb, binding));
  }
  return {};
}

bool contains(std::initializer_list<std::string_view> names, std::string_view name) {
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

std::vector<Binding> joined(std::initializer_list<std::vector<Binding>> parts) {
  std::vector<Binding> all;
  for (const std::vector<Binding>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Status check_range(const SettingRow& setting, std::int64_t value, std::string where) {
  if (!setting.range || in_range(*setting.range, static_cast<double>(value))) return {};
  const std::string what = std::isinf(setting.range->high) ? "" : ", not " + std::to_string(value);
  return fail(ErrorCode::kBadInput, range_words(*setting.range, true) + what, std::move(where));
}

Status check_range(const SettingRow& setting, double value, std::string where) {
  if (!setting.range || in_range(*setting.range, value)) return {};
  return fail(ErrorCode::kBadInput, range_words(*setting.range, false), std::move(where));
}

void take_value_aliases(std::string_view verb, std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    const SettingRow* setting = find_setting(verb, binding.name);
    const auto* text = std::get_if<std::string*>(&binding.target);
    if (setting == nullptr || setting->value_aliases.empty() || text == nullptr) continue;
    if ((*text)->empty()) continue;
    std::string ours;
    for (const std::string& name : split(**text, ','))
      ours += (ours.empty() ? "" : ",") + our_value(*setting, name);
    **text = ours;
  }
}

Status check_values(std::string_view verb, std::span<const Binding> bindings) {
  for (const Binding& binding : bindings) {
    const SettingRow* setting = find_setting(verb, binding.name);
    if (setting == nullptr) continue;
    TRY(check_number(*setting, binding));
    TRY(check_names(*setting, binding));
  }
  return {};
}

Status refuse_given(std::string_view verb, std::span<const Binding> bindings,
                    std::initializer_list<std::string_view> names, std::string_view why) {
  return refuse_if(
      verb, bindings, [&](std::string_view name) { return contains(names, name); }, why);
}

Status refuse_all_but(std::string_view verb, std::span<const Binding> bindings,
                      std::initializer_list<std::string_view> used, std::string_view why) {
  return refuse_if(
      verb, bindings, [&](std::string_view name) { return !contains(used, name); }, why);
}

Status refuse_measuring(std::string_view verb, std::span<const Binding> bindings,
                        std::string_view why) {
  const auto measures = [&](std::string_view name) {
    const SettingRow* setting = find_setting(verb, name);
    return setting != nullptr && setting->measuring;
  };
  return refuse_if(verb, bindings, measures, why);
}

}  // namespace stoker
