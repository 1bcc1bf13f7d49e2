#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "diagnosis/trace/test_made_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string fault = stoker::made_trace::fault_of(data, size);
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
