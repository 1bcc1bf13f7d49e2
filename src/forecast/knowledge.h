#pragma once

#include <string>
#include <vector>

#include "base/figure.h"
#include "base/result.h"
#include "base/units.h"
#include "input/loader_profile.h"
#include "timing/coefficients.h"

namespace stoker {

/// Measured error of memory forecasts on rows of one kind (data/coefficients/memory.json).
struct MemoryErrorCase {
  std::string name;  ///< "cnn-fp32-benchmark", ..., "default"
  Band band;         ///< 90 % of truths lie within, relative to the forecast
  std::int64_t rows = 0;
  std::string basis;

  /// The band of a forecast of this many bytes on the device, relative to it.
  [[nodiscard]] Band band_at(Bytes peak) const;
};

/// Everything that forecasts know beyond models and machines; read once from the data folder.
struct Knowledge {
  CoefficientFile timing;
  LoaderProfile loader;
  std::vector<MemoryErrorCase> memory;

  /// The case of that name, else "default", else a wide prior.
  [[nodiscard]] MemoryErrorCase memory_case(const std::string& name) const;
};

/// Reads what ships. A damaged timing or memory file is an error with its cure.
[[nodiscard]] Result<Knowledge> load_knowledge();

}  // namespace stoker
