#include "operators/cost_class.h"

#include <array>

namespace stoker {
namespace {

constexpr bool kSaturates = true;
using C = CostClass;
using L = CostLimit;

/// Priors serve as they stand only where the shipped file says nothing. Those of element-wise
/// kernels, norms, transposes and dense convolution are the reciprocals of typical multiples of the
/// ideal measured on an RTX 3090 (docs/models/time.md); the rest is judgement, which is
/// why their spread is wide.
// clang-format off
constexpr auto kRows = std::to_array<CostClassRow>({
    {C::kGemm, "gemm", {0.85, 0.80, 0.25}, L::kVector},
    {C::kGemmWeight, "gemm_weight", {0.80, 0.80, 0.30}, L::kVector},
    {C::kTensorGemm, "tensor_gemm", {0.80, 0.80, 0.35}, L::kTensor},
    {C::kTensorGemmWeight, "tensor_gemm_weight", {0.75, 0.80, 0.40}, L::kTensor},
    {C::kTensorGemmBatched, "tensor_gemm_batched", {0.75, 0.60, 0.40}, L::kTensor},
    {C::kConvolution, "convolution", {0.70, 0.75, 0.40}, L::kVector},
    {C::kConvolutionInput, "convolution_input", {0.65, 0.75, 0.40}, L::kVector},
    {C::kConvolutionWeight, "convolution_weight", {0.60, 0.75, 0.45}, L::kVector},
    {C::kWinograd, "winograd", {0.75, 0.75, 0.40}, L::kVector},
    {C::kTensorConvolution, "tensor_convolution", {0.75, 0.75, 0.35}, L::kTensor, kSaturates},
    {C::kTensorConvolutionInput, "tensor_convolution_input", {0.70, 0.75, 0.35},
     L::kTensor, kSaturates},
    {C::kTensorConvolutionWeight, "tensor_convolution_weight", {0.65, 0.75, 0.40},
     L::kTensor, kSaturates},
    {C::kLayoutTranspose, "layout_transpose", {0.50, 0.74, 0.30}, L::kMemory, kSaturates},
    {C::kGroupedConvolution, "grouped_convolution", {0.25, 0.70, 0.60}, L::kVector},
    {C::kGroupedConvolutionNhwc, "grouped_convolution_nhwc", {0.25, 0.70, 0.80}, L::kVector},
    {C::kDepthwise, "depthwise", {0.25, 0.60, 0.50}, L::kMemory},
    {C::kDepthwiseNhwc, "depthwise_nhwc", {0.30, 0.50, 0.50}, L::kMemory},
    {C::kDepthwiseWeight, "depthwise_weight", {1.00, 0.60, 0.60}, L::kMemory},
    {C::kDepthwiseWeightNhwc, "depthwise_weight_nhwc", {0.10, 0.40, 0.60}, L::kMemory},
    {C::kFlashAttention, "flash_attention", {0.90, 0.80, 0.40}, L::kTensor},
    {C::kMemoryEfficientAttention, "memory_efficient_attention", {0.50, 0.80, 0.40}, L::kTensor},
    {C::kMathAttention, "math_attention", {0.60, 0.75, 0.40}, L::kTensor},
    {C::kNormalization, "normalization", {0.50, 0.80, 0.30}, L::kMemory, kSaturates},
    {C::kNormalizationBackward, "normalization_backward", {0.50, 0.75, 0.30}, L::kMemory,
     kSaturates},
    {C::kLayerNorm, "layer_norm", {0.50, 0.70, 0.30}, L::kMemory},
    {C::kLayerNormBackward, "layer_norm_backward", {0.50, 0.60, 0.40}, L::kMemory},
    {C::kSoftmax, "softmax", {0.50, 0.80, 0.30}, L::kMemory},
    {C::kReduction, "reduction", {0.50, 0.75, 0.40}, L::kMemory, kSaturates},
    {C::kElementwise, "elementwise", {0.50, 0.87, 0.20}, L::kMemory},
    {C::kGather, "gather", {0.50, 0.55, 0.50}, L::kMemory},
    {C::kPooling, "pooling", {0.50, 0.70, 0.40}, L::kMemory, kSaturates},
    {C::kResample, "resample", {0.50, 0.60, 0.50}, L::kMemory},
    {C::kRnn, "rnn", {0.60, 0.70, 0.60}, L::kTensor},
    {C::kCopy, "copy", {0.50, 0.80, 0.25}, L::kMemory},
    {C::kOptimizer, "optimizer", {0.50, 0.80, 0.25}, L::kMemory},
    {C::kFill, "fill", {0.50, 0.80, 0.30}, L::kMemory},
    {C::kHostToDevice, "host_to_device", {0.50, 1.00, 0.30}, L::kMemory},
    {C::kCollective, "collective", {0.50, 0.80, 0.50}, L::kMemory},
    {C::kUncosted, "uncosted", {0.50, 0.50, 0.80}, L::kMemory},
});
// clang-format on
static_assert(kRows.size() == kCostClasses);

constexpr bool in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].cost_class != static_cast<CostClass>(i) || kRows[i].name.empty()) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

const CostClassRow& row_of(CostClass cost_class) {
  return kRows[static_cast<std::size_t>(cost_class)];
}

std::span<const CostClassRow, kCostClasses> cost_classes() { return kRows; }

std::string_view name_of(CostClass cost_class) { return row_of(cost_class).name; }

}  // namespace stoker
