#include "operators/measured_kind.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

using S = MeasuredSize;
constexpr auto kFlag = SizeUse::kFlag;
constexpr auto kCount = SizeUse::kCount;

constexpr std::array kProductSizes{
    S{"batch", kCount, 1},   S{"m"},          S{"n"}, S{"k"}, S{"transpose_a", kFlag},
    S{"transpose_b", kFlag}, S{"bias", kFlag}};
constexpr std::array kConvolutionSizes{S{"batch"},
                                       S{"in_channels"},
                                       S{"out_channels"},
                                       S{"groups", kCount, 1},
                                       S{"height"},
                                       S{"width"},
                                       S{"kernel"},
                                       S{"stride", kCount, 1},
                                       S{"padding", SizeUse::kAmount},
                                       S{"dilation", kCount, 1},
                                       S{"channels_last", kFlag}};
constexpr std::array kAttentionSizes{S{"batch"},      S{"heads"},    S{"query_length"},
                                     S{"key_length"}, S{"head_dim"}, S{"causal", kFlag}};
constexpr std::array kRowSizes{S{"rows"}, S{"width"}};
constexpr std::array kElements{S{"elements"}};
constexpr std::array kChannelSizes{S{"elements"}, S{"channels", kCount, 1}};
constexpr std::array kElementwiseSizes{S{"elements"}, S{"inputs", kCount, 1}};
constexpr std::array kGatherSizes{S{"elements"}, S{"table", kCount, 1}};
constexpr std::array kPoolingSizes{S{"elements"}, S{"kernel"}, S{"stride", kCount, 1}};
constexpr std::array kOptimizerSizes{S{"elements"}, S{"reads", kCount, 4}, S{"writes", kCount, 3}};

using K = KernelClass;
using M = MeasuredRule;

constexpr auto kKinds = std::to_array<MeasuredKind>({
    {.name = "gemm",
     .kernel_class = K::kGemm,
     .rule = M::kProduct,
     .sizes = kProductSizes,
     .functions = "mm addmm bmm baddbmm"},
    {.name = "convolution",
     .kernel_class = K::kConvolution,
     .rule = M::kConvolution,
     .sizes = kConvolutionSizes,
     .functions = "convolution convolution_backward"},
    {.name = "attention",
     .kernel_class = K::kAttention,
     .rule = M::kAttention,
     .sizes = kAttentionSizes,
     .functions = "_scaled_dot_product_flash_attention_for_cpu "
                  "_scaled_dot_product_flash_attention_for_cpu_backward"},
    // Two kernels backward (src/work/memory_work.cc); here as one of twice the bytes.
    {.name = "softmax",
     .kernel_class = K::kSoftmax,
     .rule = M::kRows,
     .sizes = kRowSizes,
     .words = {.read_backward = 4, .written_backward = 2, .flops = 5, .launches_backward = 2},
     .functions = "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data"},
    {.name = "layer_norm",
     .kernel_class = K::kNormalization,
     .rule = M::kRows,
     .sizes = kRowSizes,
     .words = {.read_backward = 2, .flops = 8},
     .functions = "native_layer_norm native_layer_norm_backward"},
    // Statistics first, then the result: the input is read twice, backward also the gradient.
    {.name = "batch_norm",
     .kernel_class = K::kNormalization,
     .rule = M::kWords,
     .sizes = kChannelSizes,
     .words = {.read_backward = 2, .flops = 8},
     .functions = "native_batch_norm native_batch_norm_backward"},
    {.name = "elementwise",
     .kernel_class = K::kElementwise,
     .rule = M::kWords,
     .sizes = kElementwiseSizes,
     .words = {.flops = 1, .read_size = "inputs"}},
    {.name = "reduction",
     .kernel_class = K::kReduction,
     .rule = M::kWords,
     .sizes = kElements,
     .words = {.written = 0, .written_backward = 0, .flops = 1},
     .functions = "sum mean nll_loss_forward nll_loss_backward"},
    {.name = "copy",
     .kernel_class = K::kCopy,
     .rule = M::kWords,
     .sizes = kElements,
     .functions = "copy_"},
    {.name = "gather",
     .kernel_class = K::kGather,
     .rule = M::kWords,
     .sizes = kGatherSizes,
     .functions = "embedding embedding_dense_backward"},
    {.name = "fill",
     .kernel_class = K::kFill,
     .rule = M::kWords,
     .sizes = kElements,
     .words = {.read = 0, .read_backward = 0},
     .functions = "zero_ fill_ bernoulli_"},
    {.name = "pooling",
     .kernel_class = K::kPooling,
     .rule = M::kWindows,
     .sizes = kPoolingSizes,
     .functions =
         "max_pool2d_with_indices avg_pool2d max_pool2d_with_indices_backward avg_pool2d_backward"},
    {.name = "optimizer",
     .kernel_class = K::kOptimizer,
     .rule = M::kWords,
     .sizes = kOptimizerSizes,
     .words = {.flops = 10, .read_size = "reads", .written_size = "writes"}},
});

}  // namespace

std::span<const MeasuredKind> measured_kinds() { return kKinds; }

const MeasuredKind* measured_kind(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &MeasuredKind::name);
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace stoker
