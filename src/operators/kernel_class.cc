#include "operators/kernel_class.h"

#include <algorithm>
#include <array>

#include "operators/cpu_functions.h"

namespace stoker {
namespace {

// Arithmetic of memory-bound operators.
constexpr double kNormalizationFlops = 8;  // two moments, scale and shift
constexpr double kSoftmaxFlops = 5;        // max, subtract, exp, sum, divide
constexpr CpuUse kOtherUse{4, 0};          ///< on a processor, where nothing is known: judgement

struct Costs {
  CostClass forward, backward, rows, rows_backward;
};
constexpr Costs always(CostClass c) { return {c, c, c, c}; }
constexpr Costs kNormalizationCosts{CostClass::kNormalization, CostClass::kNormalizationBackward,
                                    CostClass::kLayerNorm, CostClass::kLayerNormBackward};

constexpr KernelClassRow row(KernelClass kernel_class, std::string_view name, double element_flops,
                             Costs costs, CpuGroup group, CpuUse use,
                             std::optional<ResidualFamily> learned = std::nullopt) {
  return {kernel_class,          name,  element_flops, costs.forward, costs.backward, costs.rows,
          costs.rows_backward,
          /*needs_shape=*/false, group, use,           learned};
}
constexpr KernelClassRow shaped(KernelClass kernel_class, std::string_view name, CostClass cost,
                                CpuGroup group,
                                std::optional<ResidualFamily> learned = std::nullopt) {
  KernelClassRow r = row(kernel_class, name, 1, always(cost), group, kOtherUse, learned);
  r.needs_shape = true;
  return r;
}

using K = KernelClass;
using C = CostClass;
using G = CpuGroup;
using R = ResidualFamily;

constexpr std::array<KernelClassRow, kKernelClasses> kKernelRows{
    shaped(K::kGemm, "gemm", C::kGemm, G::kProduct, R::kGemm),
    shaped(K::kConvolution, "convolution", C::kConvolution, G::kConvolution, R::kConvolution),
    shaped(K::kDepthwiseConvolution, "depthwise_convolution", C::kDepthwise, G::kDepthwise),
    shaped(K::kAttention, "attention", C::kMathAttention, G::kAttention),
    row(K::kNormalization, "normalization", kNormalizationFlops, kNormalizationCosts,
        G::kNormalization, {10, 0.5, kAlwaysShared}, R::kRows),
    row(K::kSoftmax, "softmax", kSoftmaxFlops, always(C::kSoftmax), G::kSoftmax,
        {30, 0, kSoftmaxGrain}, R::kRows),
    row(K::kReduction, "reduction", 1, always(C::kReduction), G::kReduction, {3, 0.5}),
    row(K::kElementwise, "elementwise", 1, always(C::kElementwise), G::kElementwise, kOtherUse,
        R::kElementwise),
    row(K::kGather, "gather", 0, always(C::kGather), G::kGather, {2, 3}),
    row(K::kPooling, "pooling", 1, always(C::kPooling), G::kPooling, {1, 1, kAlwaysShared}),
    row(K::kResample, "resample", 1, always(C::kResample), G::kPooling, {4, 3, kAlwaysShared}),
    shaped(K::kRnn, "rnn", C::kRnn, G::kOther),
    row(K::kCopy, "copy", 0, always(C::kCopy), G::kElementwise, {1, 0}),
    row(K::kOptimizer, "optimizer", 1, always(C::kOptimizer), G::kElementwise, kOtherUse),
    row(K::kHostToDevice, "host_to_device", 1, always(C::kHostToDevice), G::kOther, kOtherUse),
    row(K::kFill, "fill", 0, always(C::kFill), G::kElementwise, {1, 0}),
    row(K::kCollective, "collective", 1, always(C::kCollective), G::kOther, kOtherUse),
    [] {
      KernelClassRow r = row(K::kUncosted, "uncosted", 1, always(C::kUncosted), G::kOther, {10, 1});
      r.needs_shape = true;  // bytes are all that is known
      return r;
    }(),
};

constexpr bool kernel_rows_in_order() {
  for (std::size_t i = 0; i < kKernelRows.size(); ++i) {
    if (kKernelRows[i].kernel_class != static_cast<KernelClass>(i) || kKernelRows[i].name.empty())
      return false;
  }
  return true;
}
static_assert(kernel_rows_in_order());

}  // namespace

const KernelClassRow& row_of(KernelClass kernel_class) {
  return kKernelRows[static_cast<std::size_t>(kernel_class)];
}

std::string_view name_of(KernelClass kernel_class) { return row_of(kernel_class).name; }

std::optional<KernelClass> kernel_class_named(std::string_view name) {
  const auto found = std::ranges::find(kKernelRows, name, &KernelClassRow::name);
  if (found == kKernelRows.end()) return std::nullopt;
  return found->kernel_class;
}

std::string_view name_of(CpuGroup group) {
  constexpr std::array<std::string_view, kCpuGroups> kNames{
      "products", "convolutions", "depthwise convolutions", "attention", "norms",
      "softmax",  "reductions",   "element-wise",           "gathers",   "pooling",
      "others"};
  return kNames[static_cast<std::size_t>(group)];
}

std::string_view name_of(ResidualFamily family) {
  constexpr std::array<std::string_view, kResidualFamilies> kNames{"gemm", "elementwise", "rows",
                                                                   "convolution"};
  return kNames[static_cast<std::size_t>(family)];
}

}  // namespace stoker
