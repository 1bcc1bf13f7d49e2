#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "operators/cost_class.h"

namespace stoker {

/// What kind of work a kernel does: which cost rule applies to it and how reports group it.
enum class KernelClass : std::uint8_t {
  kGemm,
  kConvolution,
  kDepthwiseConvolution,
  kAttention,
  kNormalization,
  kSoftmax,
  kReduction,
  kElementwise,
  kGather,
  kPooling,
  kResample,
  kRnn,
  kCopy,
  kOptimizer,
  kHostToDevice,
  kFill,
  kCollective,
  kUncosted
};
inline constexpr std::size_t kKernelClasses = 18;

/// Classes whose operators err alike on a processor; each has a process of its own
/// (docs/models/cpu-time.md).
enum class CpuGroup : std::uint8_t {
  kProduct,
  kConvolution,
  kDepthwise,
  kAttention,
  kNormalization,
  kSoftmax,
  kReduction,
  kElementwise,  ///< with copies, fills and the optimizer's
  kGather,
  kPooling,
  kOther
};
inline constexpr std::size_t kCpuGroups = 11;
[[nodiscard]] std::string_view name_of(CpuGroup group);

/// Kernels whose times trees have learned, FP32 only: one set of features and of forests each.
enum class ResidualFamily : std::uint8_t {
  kGemm,         ///< matrix products, batched or not
  kElementwise,  ///< one pass over tensors
  kRows,         ///< softmax and layer norm, forward
  kConvolution   ///< 3x3, stride 1, one group, forward
};
inline constexpr std::size_t kResidualFamilies = 4;
[[nodiscard]] std::string_view name_of(ResidualFamily family);

/// How a function uses a processor.
struct CpuUse {
  double vectors = 2;      ///< instructions for each vector of elements
  double scalars = 0;      ///< cycles for each element that no vector unit takes
  std::int64_t grain = 0;  ///< elements of one thread at least; 0: ATen's 32,768
  double call_us = 0;      ///< a library's own, whatever the size
};

/// Everything that holds for all kernels of a class: its row of the table. Adding a class takes a
/// value of the enumeration and a row, nothing else.
struct KernelClassRow {
  KernelClass kernel_class;
  std::string_view name;
  /// Arithmetic for each element where bytes bound the time; only its order of magnitude matters.
  double element_flops = 1;
  /// Efficiencies on a GPU: forward, backward, and the same of kernels along rows (RowShape).
  CostClass cost, cost_backward, cost_rows, cost_rows_backward;
  /// Rules need a shape; a kernel of the class without one is costed by its bytes.
  bool needs_shape = false;
  CpuGroup cpu_group = CpuGroup::kOther;
  CpuUse cpu{};  ///< of functions that cpu_functions.cc does not list
  std::optional<ResidualFamily> learned{};
};
[[nodiscard]] const KernelClassRow& row_of(KernelClass kernel_class);

[[nodiscard]] std::string_view name_of(KernelClass kernel_class);
[[nodiscard]] std::optional<KernelClass> kernel_class_named(std::string_view name);

}  // namespace stoker
