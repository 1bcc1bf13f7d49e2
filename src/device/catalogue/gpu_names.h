#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

/// What one GPU answers to.
struct GpuNames {
  std::string name;  ///< catalogue key
  std::vector<std::string> aliases;
};

struct GpuNameMatch {
  std::size_t index = 0;  ///< into the names that were given
  std::string
      assumption;  ///< "v100 taken as V100-SXM2-16GB (...)"; empty when nothing was left open
};

/// The rules by which a typed name finds a GPU (GpuCatalogue::find says what is accepted).
[[nodiscard]] Result<GpuNameMatch> match_gpu_name(std::string_view typed,
                                                  std::span<const GpuNames> names);

}  // namespace stoker
