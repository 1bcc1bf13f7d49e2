#include "snapshot/snapshot_settings.h"

#include <bit>
#include <charconv>

#include "snapshot/snapshot_fields.h"

namespace stoker {
namespace {

using snapshot_fields::Fields;
using snapshot_fields::refuse;

/// {"1": 0, "2": 0, "4": 0 ...}: MiB where an interval begins, and its divisions.
void read_divisions(const PickleValue& dict, AllocatorConfig& config) {
  if (!dict.is(PickleKind::kDict)) return;
  for (std::size_t i = 0; i < dict.size(); ++i) {
    const auto text = dict.key(i).as_string();
    const auto divisions = dict.value(i).as_int();
    std::uint64_t megabytes = 0;
    if (!text || !divisions || *divisions < 0 || *divisions > 1 << 30) continue;
    (void)std::from_chars(text->data(), text->data() + text->size(), megabytes);
    if (!std::has_single_bit(megabytes)) continue;
    const auto interval = static_cast<std::size_t>(std::bit_width(megabytes)) - 1;
    if (interval < kRoundupIntervals)
      config.roundup_power2_divisions[interval] = static_cast<std::uint32_t>(*divisions);
  }
}

}  // namespace

void read_allocator_settings(const PickleValue& root, Snapshot& snapshot) {
  const auto found = root.find("allocator_settings");
  if (!found) return;
  if (!found->is(PickleKind::kDict)) {
    snapshot.findings.add("unknown_setting", Severity::kWarning,
                          "the allocator's settings are " + std::string(name_of(found->kind())) +
                              ", not a dict; the defaults are taken");
    return;
  }
  const Fields settings{*found, "allocator_settings"};
  snapshot.has_settings = true;
  for (const char* key : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const auto text = settings.dict.find(key);
    if (text && text->as_string().value_or("") != "") {
      snapshot.settings_text = *text->as_string();
    }
  }
  if (auto config = parse_allocator_config(snapshot.settings_text)) {
    snapshot.config = *config;
  } else if (config.error().code == ErrorCode::kUnsupported) {
    refuse("allocator_settings", "names another allocator: " + config.error().message,
           ErrorCode::kUnsupported);
  } else {
    snapshot.findings.add(
        "unknown_setting", Severity::kWarning,
        "the allocator's settings hold what this version does not know: " + config.error().message);
  }
  if (const auto backend = settings.dict.find("backend");
      backend && backend->as_string().value_or("native") != "native") {
    refuse("allocator_settings.backend",
           "is " + std::string(*backend->as_string()) + "; only 'native' is understood",
           ErrorCode::kUnsupported);
  }
  // These are what was in force, whatever the text says; -1 is the limit that nothing reaches.
  if (const auto value = settings.dict.find("max_split_size");
      value && !value->is(PickleKind::kNone)) {
    const auto limit = value->as_int();
    if (!limit) {
      snapshot.findings.add("unknown_setting", Severity::kWarning,
                            "the allocator's setting max_split_size is " +
                                std::string(name_of(value->kind())) +
                                ", not an int; that of the settings' text or no limit is taken");
    } else if (*limit > 0) {
      snapshot.config.max_split_size = Bytes{*limit};
    }
  }
  if (const auto value = settings.dict.find("garbage_collection_threshold"))
    snapshot.config.garbage_collection_threshold = value->as_number().value_or(0);
  if (const auto value = settings.dict.find("expandable_segments"))
    snapshot.config.expandable_segments = value->as_bool().value_or(false);
  if (const auto value = settings.dict.find("roundup_power2_divisions"))
    read_divisions(*value, snapshot.config);
}

}  // namespace stoker
