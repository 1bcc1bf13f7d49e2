#include "operators/shapes.h"

namespace stoker {

std::string_view name_of(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::kFlash:
      return "flash";
    case AttentionBackend::kMemoryEfficient:
      return "memory_efficient";
    case AttentionBackend::kMath:
      return "math";
  }
  return "";
}

}  // namespace stoker
