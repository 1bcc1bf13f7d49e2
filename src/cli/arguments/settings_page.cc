#include "cli/arguments/settings_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "cli/arguments/help.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kTop =
    "# Settings\n"
    "\n"
    "Every flag of every verb. This page is printed by `stoker settings --markdown` from the table "
    "that flags, help,\n"
    "refusals and completion come from.\n"
    "\n"
    "- From Python the names are keywords: `--max-global-batch 512` is `max_global_batch=512`, "
    "`--no-pin` is `pin=False`.\n"
    "- `_` counts as `-`, so that `--num_workers` is `--num-workers`. *Also* gives names that "
    "PyTorch, Lightning,\n"
    "  Transformers and timm have for a setting; they are taken by the command and from Python.\n"
    "- *Devices*: what means something for a GPU or a CPU alone is refused for the other.\n"
    "- `predict` takes each setting as it is given; `plan` searches what is left out.\n"
    "- *Of* names the one verb that has a setting, where plan and predict differ.\n"
    "- What needs a backward pass is refused for a step that was captured for inference.\n"
    "- Explained elsewhere: `--copy` ([time](../models/time.md#a-step)), `--alloc-conf`\n"
    "  ([memory](../models/memory.md#rules-of-the-allocator)), `--method` "
    "([rule](../models/recommendations.md#the-thesis-rule),\n"
    "  [estimate](../models/two-point.md)), `--json` ([reference](json.md)).\n";

constexpr std::string_view kEnvironmentPage =
    "\n## Environment\n"
    "\n"
    "| variable | meaning |\n"
    "| --- | --- |\n"
    "| `STOKER_PYTHON` | the Python with PyTorch; default: the one beside the binary, else "
    "`python3` |\n"
    "| `STOKER_BINARY` | the binary that `import stoker` calls |\n"
    "| `STOKER_DATA` | the folder `data` of the catalogue, coefficients and captured models |\n"
    "| `STOKER_FAKE_CPU=1` | captures on fake CPU tensors, without the C++ library |\n"
    "| `STOKER_PICTURES` | folder of the scenario `imagenet` of `stoker validate --input` |\n"
    "| `XDG_CACHE_HOME`, `XDG_STATE_HOME` | where captures and probes, and the accuracy log, are "
    "kept |\n";

std::string range_text(const SettingRow& s) {
  if (!s.range) return {};
  const auto number = [](double value) { return with_commas(static_cast<std::int64_t>(value)); };
  const SettingRange& r = *s.range;
  const std::string low = (r.above_low ? "above " : "") + number(r.low);
  return std::isinf(r.high) ? (r.above_low ? low : "from " + low)
                            : low + (r.above_low ? " up to " : " to ") + number(r.high);
}

/// A cell's text: "|" ends one.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

/// Who reads of one verb needs no column that names it.
enum class VerbColumn { kShown, kLeftOut };

std::string row(const SettingRow& s, VerbColumn column) {
  std::string meaning(s.words);
  if (const std::string range = range_text(s); !range.empty()) meaning += " (" + range + ")";
  if (s.devices == SettingDevices::kCpu) meaning += "; CPU only";
  if (s.devices == SettingDevices::kGpu) meaning += "; GPU only";
  std::string also;
  for (const std::string& alias : names_in(s.aliases))
    also += (also.empty() ? "`--" : ", `--") + alias + "`";
  const bool both = s.verbs.find(' ') != std::string_view::npos;
  const std::string verb =
      column == VerbColumn::kLeftOut ? "" : (both ? "" : std::string(s.verbs)) + " | ";
  return "| `" + cell(usage_of(s)) + "` | " + verb + cell(meaning) + " | " +
         cell(std::string(s.fallback)) + " | " + also + " |\n";
}

std::string head(VerbColumn column) {
  return column == VerbColumn::kShown
             ? "\n| flag | of | meaning | default | also |\n| --- | --- | --- | --- | --- |\n"
             : "\n| flag | meaning | default | also |\n| --- | --- | --- | --- |\n";
}

bool is_of_jobs(const SettingRow& s) {
  return s.verbs.starts_with("plan") || s.verbs.starts_with("predict");
}

/// plan and predict, under the headings of their help.
std::string jobs_part() {
  std::vector<std::string_view> groups;
  for (const SettingRow& s : all_settings()) {
    if (is_of_jobs(s) && std::find(groups.begin(), groups.end(), s.group) == groups.end())
      groups.push_back(s.group);
  }
  std::string text = "\n## plan and predict\n";
  for (const std::string_view group : groups) {
    if (!group.empty()) text += "\n### " + std::string(group) + "\n";
    text += head(VerbColumn::kShown);
    for (const SettingRow& s : all_settings()) {
      if (is_of_jobs(s) && s.group == group) text += row(s, VerbColumn::kShown);
    }
  }
  return text;
}

/// The verb under which a setting stands on the page, by setting.
using Places = std::map<const SettingRow*, std::string>;

/// One verb. A setting that an earlier verb shares is named, not described a second time.
std::string verb_part(const Command& command, Places& places) {
  std::map<std::string, std::string> shared;
  std::string rows;
  for (const SettingRow* s : settings_of(command.name)) {
    const auto [place, is_new] = places.try_emplace(s, command.name);
    if (is_new) {
      rows += row(*s, VerbColumn::kLeftOut);
      continue;
    }
    std::string& names = shared[place->second];
    names += (names.empty() ? "`" : ", `") + usage_of(*s) + "`";
  }
  std::string text = "\n## " + command.name + "\n\n" + command.summary + "\n";
  for (const auto& [verb, names] : shared)
    text += "\nAs of [" + verb + "](#" + verb + "): " + names + ".\n";
  return text + head(VerbColumn::kLeftOut) + rows;
}

}  // namespace

std::string settings_page(std::span<const Section> sections) {
  std::string text = std::string(kTop) + jobs_part();
  Places places;
  for (const Section& section : sections) {
    for (const Command& command : section.commands) {
      if (command.name != "plan" && command.name != "predict") text += verb_part(command, places);
    }
  }
  return text + std::string(kEnvironmentPage);
}

std::string settings_list() {
  std::string text;
  for (const SettingRow& s : all_settings()) {
    if (!s.positional)
      text += help_line(usage_of(s), std::string(s.verbs) + ": " + std::string(s.words));
  }
  return text;
}

}  // namespace stoker::cli
