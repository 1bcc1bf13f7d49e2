#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

/// What efficiencies are fitted for: finer than KernelClass, because the library runs different
/// kernels for them (docs/models/time.md, "Cost classes").
enum class CostClass : std::uint8_t {
  kGemm,
  kGemmWeight,
  kTensorGemm,
  kTensorGemmWeight,
  kTensorGemmBatched,  ///< torch.bmm: attention in separate operators
  kConvolution,
  kConvolutionInput,
  kConvolutionWeight,
  kWinograd,
  kTensorConvolution,
  kTensorConvolutionInput,
  kTensorConvolutionWeight,
  kLayoutTranspose,
  kGroupedConvolution,
  kGroupedConvolutionNhwc,
  kDepthwise,
  kDepthwiseNhwc,
  kDepthwiseWeight,
  kDepthwiseWeightNhwc,
  kFlashAttention,
  kMemoryEfficientAttention,
  kMathAttention,
  kNormalization,
  kNormalizationBackward,
  kLayerNorm,  ///< along rows; the two above are batch norm and its like
  kLayerNormBackward,
  kSoftmax,
  kReduction,
  kElementwise,
  kGather,
  kPooling,
  kResample,
  kRnn,
  kCopy,
  kOptimizer,
  kFill,
  kHostToDevice,
  kCollective,
  kUncosted
};
inline constexpr std::size_t kCostClasses = 39;

/// Classes with one limit share more than those with different ones: the same unit is busy.
enum class CostLimit : std::uint8_t { kVector, kTensor, kMemory };
inline constexpr std::size_t kCostLimits = 3;

/// Fractions of what the data sheet promises, where nothing was fitted.
struct CostPrior {
  double compute = 0.8;  ///< of the capped peak rate
  double memory = 0.8;   ///< of the nameplate bandwidth
  double spread = 0.5;   ///< 90 % relative half-width of the class's time
};

/// Everything that holds for a cost class: its row of the table. Adding a class takes a value of
/// the enumeration and a row; which kernels are of it, the class of kernels (kernel_class.h) or its
/// rule says.
struct CostClassRow {
  CostClass cost_class;
  std::string_view name;  ///< in files of coefficients and in answers: "tensor_gemm"
  CostPrior prior;
  CostLimit limit;
  /// Falls short of wide memories. The others read and write in order; measured single operators
  /// say that they keep up.
  bool saturates = false;
};
[[nodiscard]] const CostClassRow& row_of(CostClass cost_class);
[[nodiscard]] std::span<const CostClassRow, kCostClasses> cost_classes();

[[nodiscard]] std::string_view name_of(CostClass cost_class);

}  // namespace stoker
