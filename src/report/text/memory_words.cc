#include "report/text/memory_words.h"

#include <string_view>

#include "base/text.h"

namespace stoker {
namespace {

void append(std::string& text, std::string_view name, Bytes bytes) {
  if (!text.empty()) text += ", ";
  text += std::string(name) + " " + human_bytes(bytes);
}

}  // namespace

std::string live_words(const MemoryForecast& memory) {
  std::string text;
  for (std::size_t r = 0; r < kBufferRoles; ++r) {
    const Bytes bytes = memory.outcome.live.by_role[r];
    if (bytes.count() > 0) append(text, name_of(static_cast<BufferRole>(r)), bytes);
  }
  return text;
}

std::string outside_words(const MemoryForecast& memory) {
  std::string text;
  for (const OutsideMemory& part : memory.outside) append(text, part.name, part.bytes);
  return text;
}

std::string fits_words(const Remedy& remedy) {
  if (remedy.only_by_flushing) return "by emptying the cache";
  return remedy.verdict == MemoryVerdictWord::kFits    ? "yes"
         : remedy.verdict == MemoryVerdictWord::kRisky ? "risky"
                                                       : "no";
}

}  // namespace stoker
