#include "timing/common/bound.h"

namespace stoker {

std::string_view name_of(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kLatency:
      break;
  }
  return "latency";
}

}  // namespace stoker
