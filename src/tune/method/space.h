#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker::tune {

/// One thing that a search chooses: among values, or any number between two on a logarithmic
/// scale.
struct Dimension {
  std::string name;
  std::vector<std::string> values{};
  double low = 0, high = 0;  ///< where there are no values

  [[nodiscard]] bool continuous() const { return values.empty(); }
};

/// "64,128" and "64..512x2" are values; "1e-5..1e-1", of powers of ten, is any number between them.
[[nodiscard]] Result<Dimension> parse_dimension(const std::string& name, const std::string& typed);

/// A number as it stands in a command: four digits.
[[nodiscard]] std::string number_text(double value);

/// The values of configuration `index`, from 0, drawn independently: the same for the same seed.
[[nodiscard]] std::vector<std::string> draw(const std::vector<Dimension>& space, std::uint64_t seed,
                                            std::uint64_t index);

/// All combinations, in the order of their writing; a continuous dimension counts by its powers of
/// ten.
[[nodiscard]] std::vector<std::vector<std::string>> combinations(
    const std::vector<Dimension>& space);

}  // namespace stoker::tune
