#include <cstdint>
#include <string_view>

#include "device/catalogue/instances.h"

/// Tables of rented machines and their prices: refused, or a machine and its price.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)stoker::InstanceTable::parse(text, "fuzz.csv");
  stoker::Instance instance;
  instance.provider = "aws";
  instance.name = "x";
  (void)stoker::price_of(instance, text, "fuzz.csv");
  return 0;
}
