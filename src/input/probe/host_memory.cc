#include "input/probe/storage.h"
#include "system/machine_facts.h"

namespace stoker {

void read_host_memory(const SystemFiles& files, StorageFacts& out) {
  const MemoryFacts memory = memory_from(files);
  out.available = memory.available;
  out.limit = memory.limit ? memory.limit->limit : Bytes{};
}

}  // namespace stoker
