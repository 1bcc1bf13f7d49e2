// Whatever the bytes, the reader returns a Step whose sizes and work can be asked for, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "step/sizes.h"
#include "step/step_reader.h"
#include "work/work.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto step = stoker::parse_step({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!step) return 0;
  const auto sizes = stoker::Sizes::at(*step, {});
  if (sizes) (void)stoker::totals_of(*step, *sizes);
  return 0;
}
