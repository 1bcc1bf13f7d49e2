#include "scenario/sources/capture_words.h"

#include <array>
#include <utility>

namespace stoker {
namespace {

/// "2.14.1+cu130" -> "2.14.1": the build says nothing about what was captured.
std::string release(const std::string& version) { return version.substr(0, version.find('+')); }

}  // namespace

std::string ago(std::int64_t seconds) {
  constexpr std::array<std::pair<std::int64_t, const char*>, 3> kUnits{
      {{86400, "day"}, {3600, "hour"}, {60, "minute"}}};
  for (const auto& [unit, name] : kUnits) {
    const std::int64_t count = seconds / unit;
    if (count > 0) return std::to_string(count) + " " + name + (count > 1 ? "s" : "") + " ago";
  }
  return "just now";
}

std::string capture_words(const Provenance& p, std::int64_t now) {
  std::string text =
      "the model as captured by PyTorch " + (p.torch.empty() ? "?" : release(p.torch));
  for (const auto& [library, version] : p.libraries)
    text += ", " + library + " " + release(version);
  if (p.captured_at > 0) return text + ", " + ago(now - p.captured_at);
  return p.date.empty() ? text : text + " of " + p.date;
}

}  // namespace stoker
