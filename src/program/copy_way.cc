#include "program/copy_way.h"

#include <array>
#include <cstddef>

namespace stoker {

std::string_view name_of(CopyWay way) {
  constexpr std::array<std::string_view, 4> kNames{"overlapped", "non-blocking", "blocking",
                                                   "pageable"};
  return kNames[static_cast<std::size_t>(way)];
}

}  // namespace stoker
