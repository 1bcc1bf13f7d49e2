// Whatever the bytes, the reader returns a tree that can be walked, or an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "snapshot/pickle.h"

namespace {

using namespace stoker;

/// Two levels into everything: a value may hold itself.
std::size_t walk(const PickleValue& value, int depth) {
  std::size_t seen = value.as_string().value_or("").size() + (value.as_number() ? 1 : 0);
  if (depth == 0) return seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value.is(PickleKind::kDict)) {
      seen += walk(value.key(i), depth - 1) + walk(value.value(i), depth - 1);
      if (const auto key = value.key(i).as_string(); key && !value.find(*key)) __builtin_trap();
    } else {
      seen += walk(value[i], depth - 1);
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto pickle = Pickle::parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!pickle) return 0;
  if (pickle->memory() > Pickle::kMemoryAlways + Pickle::kMemoryPerByte * size) __builtin_trap();
  return walk(pickle->root(), 2) == ~std::size_t{0};
}
