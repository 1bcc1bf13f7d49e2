#include <cstdint>
#include <string_view>
#include <vector>

#include "observe/record/recording.h"

/// Damage is passed over and counted, whatever the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::int64_t samples = 0;
  const auto read =
      stoker::parse_recording(bytes, "fuzz",
                              {.facts = [](const stoker::WatchFacts&) {},
                               .processes = [](const std::vector<stoker::ProcessFacts>&) {},
                               .sample = [&](const stoker::Sample&) { ++samples; }});
  if (read && (read->samples != samples || read->damaged_bytes < 0 || read->cut_bytes < 0))
    __builtin_trap();
  return 0;
}
