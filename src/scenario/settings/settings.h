#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stoker {

/// What a setting takes.
enum class SettingType : std::uint8_t {
  kSwitch,  ///< nothing: it is given, or not
  kPair,    ///< nothing: --clip or --no-clip; without either, what is usual or was captured
  kText,
  kWhole,
  kNumber,
  kList  ///< texts: given several times, or once with commas
};

/// The devices that a setting means something for.
enum class SettingDevices : std::uint8_t { kAny, kGpu, kCpu };

/// The numbers that a setting takes.
struct SettingRange {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  ///< `low` itself is refused
};

/// One setting of some verbs. Flags, --help, refusals, completion, Python's keywords and
/// docs/reference/settings.md come from this description. A name whose meaning differs between
/// verbs has a row for each meaning.
struct SettingRow {
  std::string_view
      name;  ///< "max-global-batch": the flag without dashes; Python's keyword with "_" for "-"
  std::string_view verbs;  ///< separated by spaces
  std::string_view group;  ///< heading in --help-all
  SettingType type = SettingType::kText;
  std::string_view value = {};     ///< what stands for its value in --help: "N", "GPU"
  std::string_view words = {};     ///< one line: what it is
  std::string_view fallback = {};  ///< in words: what holds where it is not given
  std::string_view aliases =
      {};                        ///< names that PyTorch's ecosystem has for it, separated by spaces
  std::string_view noun = {};    ///< of one of `values`, when that is not the name
  std::string_view values = {};  ///< all that it can be, separated by spaces; empty: anything
  /// What others call one of `values`: "bf16-mixed=amp-bf16 32=fp32".
  std::string_view value_aliases = {};
  std::optional<SettingRange> range = {};
  SettingDevices devices = SettingDevices::kAny;
  std::string_view first = {};  ///< the verbs whose --help shows it; --help-all shows every setting
  char letter = 0;              ///< 'o': -o is another name for it
  bool positional = false;      ///< given by its place, without dashes
  bool required = false;
  bool several = false;       ///< of one of `values`: several may be given, with commas
  bool keeps_commas = false;  ///< of a list: a comma belongs to the value, which is given again
  bool counts = false;        ///< of a whole number: 1.28M and 50k are understood
  bool training = false;      ///< means nothing for a step without a backward pass
  bool measuring = false;     ///< says how something is measured: means nothing where a file of
                              ///< measurements is given
};

/// All settings, in the order of --help-all.
[[nodiscard]] std::span<const SettingRow> all_settings();

/// The setting of this verb with this name (not an alias); nullptr when it has none.
[[nodiscard]] const SettingRow* find_setting(std::string_view verb, std::string_view name);

[[nodiscard]] std::vector<const SettingRow*> settings_of(std::string_view verb);

/// Whether it is among the settings that matter first for this verb.
[[nodiscard]] bool matters_first(const SettingRow& setting, std::string_view verb);

/// "a b" -> a, b.
[[nodiscard]] std::vector<std::string> names_in(std::string_view list);

/// "--batch", or "model" where it is given by its place.
[[nodiscard]] std::string flag_of(const SettingRow& setting);

/// Whether `typed` ("--pin-memory") stands for it: its name, an alias, "-o", or "--no-" before a
/// name, which switches off a pair and leaves out anything else; "_" counts as "-".
[[nodiscard]] bool answers_to(const SettingRow& setting, std::string_view typed);

/// All flags that stand for it, the plainest first: --pin, --pin-memory, --no-pin ...
[[nodiscard]] std::vector<std::string> flags_of(const SettingRow& setting);

/// Where a setting's value is kept. bool: a switch.
using SettingTarget =
    std::variant<bool*, std::optional<bool>*, std::string*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::vector<std::string>*>;

/// A setting by name, and where its value is kept: what a request offers, so that flags and checks
/// reach all of it.
struct Binding {
  std::string_view name;
  SettingTarget target;
};

/// The bindings of several parts of a request, one part after another.
[[nodiscard]] std::vector<Binding> joined(std::initializer_list<std::vector<Binding>> parts);

/// Whether it holds anything but its default, nothing.
[[nodiscard]] bool was_given(const Binding& binding);

/// Refuses a number out of the setting's range; `where` is how the error names the setting.
[[nodiscard]] Status check_range(const SettingRow& setting, std::int64_t value, std::string where);
[[nodiscard]] Status check_range(const SettingRow& setting, double value, std::string where);

/// Puts our names of values in place of those that others have: "bf16-mixed" is amp-bf16.
void take_value_aliases(std::string_view verb, std::span<const Binding> bindings);

/// Refuses the first number out of its range and the first name that is none of its setting's
/// values.
[[nodiscard]] Status check_values(std::string_view verb, std::span<const Binding> bindings);

/// Refuses the first of `names` that was given: a setting that changes nothing would be taken for
/// one that was obeyed. `why` continues "--explain: ...".
[[nodiscard]] Status refuse_given(std::string_view verb, std::span<const Binding> bindings,
                                  std::initializer_list<std::string_view> names,
                                  std::string_view why);

/// Refuses whatever was given besides `used`.
[[nodiscard]] Status refuse_all_but(std::string_view verb, std::span<const Binding> bindings,
                                    std::initializer_list<std::string_view> used,
                                    std::string_view why);

/// Refuses the first that was given of those that say how something is measured.
[[nodiscard]] Status refuse_measuring(std::string_view verb, std::span<const Binding> bindings,
                                      std::string_view why);

}  // namespace stoker
