// Whatever the bytes, a snapshot (or a profile) is refused or can be explained and replayed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "snapshot/explanation.h"
#include "snapshot/kineto_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const std::string content(reinterpret_cast<const char*>(data), size);
  if (const auto memory = parse_kineto_memory(content, "fuzz")) {
    (void)summarize(*memory);
    (void)compare_with_kineto(*memory);
  }
  const auto snapshot = parse_snapshot(content, "fuzz");
  if (!snapshot) return 0;
  const SnapshotHistory history(*snapshot, snapshot->devices().front());
  for (const MemoryMoment moment :
       {MemoryMoment::kPeak, MemoryMoment::kOutOfMemory, MemoryMoment::kEnd}) {
    ExplainOptions options;
    options.moment = moment;
    if (history.has(moment) && !explain_snapshot(*snapshot, options, "fuzz")) __builtin_trap();
  }
  return 0;
}
