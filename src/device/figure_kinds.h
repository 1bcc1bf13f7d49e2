#pragma once

#include <span>
#include <string_view>

#include "base/ranges.h"

namespace stoker {

/// What a [[calibration.figure]] may be called, and what its value may be
/// (docs/reference/machine-file.md says what each means).
struct FigureKind {
  std::string_view name;
  Range range;
  bool by_threads = false;  ///< one for each number of threads
  std::string_view what;    ///< for people: "an operator issued in the forward pass"
};

[[nodiscard]] std::span<const FigureKind> figure_kinds();

/// Whether it was learned from training runs (`stoker validate --learn`): a correction of the
/// forecasts from the other figures and rows.
[[nodiscard]] bool is_learned(std::string_view name);

/// Null when no figure is called so.
[[nodiscard]] const FigureKind* figure_kind(std::string_view name);

}  // namespace stoker
