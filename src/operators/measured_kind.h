#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "operators/kernel_class.h"

namespace stoker {

/// What a size of a measured operator may be.
enum class SizeUse : std::uint8_t {
  kNeeded,  ///< at least 1, and given
  kCount,   ///< at least 1; `when_absent` where it is not given
  kAmount,  ///< 0 where it is not given: padding
  kFlag     ///< 0 or 1, and 0 where it is not given
};

struct MeasuredSize {
  std::string_view name;
  SizeUse use = SizeUse::kNeeded;
  std::int64_t when_absent = 0;
};

/// How a kernel's FLOPs and bytes follow from the sizes.
enum class MeasuredRule : std::uint8_t {
  kProduct,
  kConvolution,
  kAttention,
  kRows,     ///< words for each element, of rows by width
  kWords,    ///< words for each element
  kWindows,  ///< `elements` are results, each of a window of `kernel` squared, `stride` apart
};

/// Words that are read and written for each element, and FLOPs.
struct MeasuredWords {
  double read = 1, read_backward = 1;
  double written = 1, written_backward = 1;
  double flops = 0;
  std::uint16_t launches_backward = 1;
  /// Sizes that say how many words are read and written; empty: as above.
  std::string_view read_size{}, written_size{};
};

/// What rows of measured operators may be called: a row of the table.
struct MeasuredKind {
  std::string_view name;  ///< "gemm"
  KernelClass kernel_class;
  MeasuredRule rule;
  std::span<const MeasuredSize> sizes;
  MeasuredWords words{};
  /// Functions of ATen that calibrations of CPUs measure as this kind, blank-separated; what is
  /// element-wise is named where its calls are made (python/stoker/calibrate/operators.py).
  std::string_view functions{};
};
[[nodiscard]] std::span<const MeasuredKind> measured_kinds();
/// Null: none is called so.
[[nodiscard]] const MeasuredKind* measured_kind(std::string_view name);

}  // namespace stoker
