#include <cstdio>

#include "memory/cuda/allocator.h"

namespace stoker {
namespace {

/// As c10's format_size writes it, so that the numbers can be compared with a real message.
std::string pytorch_size(Bytes bytes) {
  constexpr std::int64_t kKi = 1024;
  const std::int64_t count = bytes.count();
  if (count <= kKi) return std::to_string(count) + " bytes";
  const char* unit = " KiB";
  double value = static_cast<double>(count) / kKi;
  if (count > kKi * kKi * kKi) {
    unit = " GiB";
    value /= kKi * kKi;
  } else if (count > kKi * kKi) {
    unit = " MiB";
    value /= kKi;
  }
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f%s", value, unit);
  return buffer;
}

}  // namespace

std::string OutOfMemory::text() const {
  std::string result = "tried to allocate " + pytorch_size(tried) + " (for " +
                       pytorch_size(requested) + ") with " + pytorch_size(free) + " free of " +
                       pytorch_size(total);
  if (allowed) result += ", " + pytorch_size(*allowed) + " allowed";
  return result + "; " + pytorch_size(allocated) + " allocated by PyTorch, " +
         pytorch_size(reserved_unallocated) + " reserved by PyTorch but unallocated";
}

}  // namespace stoker
