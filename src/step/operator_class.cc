#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "step/work.h"

namespace stoker {
namespace {

using C = KernelClass;
struct Rule {
  std::string_view
      stem;  ///< of the operator name without namespace, trailing underscore and `_backward`
  KernelClass kernel_class;
};

/// Sorted by stem. One row for an operator, its in-place form and its backward; names by PyTorch's
/// aten/src/ATen/native/native_functions.yaml.
constexpr auto kRules = std::to_array<Rule>({
    {"_adaptive_avg_pool2d", C::kPooling},
    {"_adaptive_avg_pool3d", C::kPooling},
    {"_batch_norm_no_update", C::kNormalization},
    {"_batch_norm_with_update", C::kNormalization},
    {"_conj_physical", C::kCopy},
    {"_cudnn_rnn", C::kRnn},
    {"_embedding_bag", C::kGather},
    {"_fft_c2c", C::kUncosted},
    {"_fused_dropout", C::kElementwise},
    {"_fused_rms_norm", C::kNormalization},
    {"_index_put_impl", C::kGather},
    {"_log_softmax", C::kSoftmax},
    {"_log_softmax_backward_data", C::kSoftmax},
    {"_native_batch_norm_legit", C::kNormalization},
    {"_native_batch_norm_legit_functional", C::kNormalization},
    {"_prelu_kernel", C::kElementwise},
    {"_safe_softmax", C::kSoftmax},
    {"_softmax", C::kSoftmax},
    {"_softmax_backward_data", C::kSoftmax},
    {"_to_copy", C::kCopy},
    {"_unsafe_index", C::kGather},
    {"_unsafe_index_put", C::kGather},
    {"_upsample_bicubic2d_aa", C::kResample},
    {"_upsample_bilinear2d_aa", C::kResample},
    {"_weight_norm_interface", C::kNormalization},
    {"abs", C::kElementwise},
    {"acos", C::kElementwise},
    {"adaptive_avg_pool2d", C::kPooling},
    {"adaptive_avg_pool3d", C::kPooling},
    {"adaptive_max_pool1d", C::kPooling},
    {"adaptive_max_pool2d", C::kPooling},
    {"adaptive_max_pool3d", C::kPooling},
    {"add", C::kElementwise},
    {"addbmm", C::kGemm},
    {"addcdiv", C::kElementwise},
    {"addcmul", C::kElementwise},
    {"addmm", C::kGemm},
    {"addmv", C::kGemm},
    {"addr", C::kGemm},
    {"affine_grid_generator", C::kElementwise},
    {"all", C::kReduction},
    {"amax", C::kReduction},
    {"amin", C::kReduction},
    {"aminmax", C::kReduction},
    {"any", C::kReduction},
    {"arange", C::kFill},
    {"argmax", C::kReduction},
    {"argmin", C::kReduction},
    {"argsort", C::kReduction},
    {"asin", C::kElementwise},
    {"atan", C::kElementwise},
    {"atan2", C::kElementwise},
    {"avg_pool1d", C::kPooling},
    {"avg_pool2d", C::kPooling},
    {"avg_pool3d", C::kPooling},
    {"baddbmm", C::kGemm},
    {"batch_norm", C::kNormalization},
    {"batch_norm_backward_elemt", C::kNormalization},
    {"batch_norm_backward_reduce", C::kNormalization},
    {"batch_norm_elemt", C::kNormalization},
    {"batch_norm_stats", C::kNormalization},
    {"bernoulli", C::kElementwise},
    {"binary_cross_entropy", C::kElementwise},
    {"binary_cross_entropy_with_logits", C::kElementwise},
    {"bitwise_and", C::kElementwise},
    {"bitwise_not", C::kElementwise},
    {"bitwise_or", C::kElementwise},
    {"bitwise_xor", C::kElementwise},
    {"bmm", C::kGemm},
    {"bucketize", C::kGather},
    {"cat", C::kCopy},
    {"ceil", C::kElementwise},
    {"celu", C::kElementwise},
    {"channel_shuffle", C::kCopy},
    {"clamp", C::kElementwise},
    {"clamp_max", C::kElementwise},
    {"clamp_min", C::kElementwise},
    {"clone", C::kCopy},
    {"col2im", C::kCopy},
    {"constant_pad_nd", C::kCopy},
    {"convolution", C::kConvolution},
    {"convolution_overrideable", C::kConvolution},
    {"copy", C::kCopy},
    {"cos", C::kElementwise},
    {"cudnn_batch_norm", C::kNormalization},
    {"cudnn_convolution", C::kConvolution},
    {"cudnn_convolution_transpose", C::kConvolution},
    {"cumprod", C::kReduction},
    {"cumsum", C::kReduction},
    {"diag_embed", C::kCopy},
    {"diagonal", C::kCopy},
    {"div", C::kElementwise},
    {"dot", C::kReduction},
    {"dropout", C::kElementwise},
    {"elu", C::kElementwise},
    {"embedding", C::kGather},
    {"embedding_dense", C::kGather},
    {"embedding_renorm", C::kGather},
    {"eq", C::kElementwise},
    {"erf", C::kElementwise},
    {"exp", C::kElementwise},
    {"expm1", C::kElementwise},
    {"eye", C::kFill},
    {"fill", C::kFill},
    {"flip", C::kCopy},
    {"floor", C::kElementwise},
    {"floor_divide", C::kElementwise},
    {"fmod", C::kElementwise},
    {"full", C::kFill},
    {"full_like", C::kFill},
    {"gather", C::kGather},
    {"ge", C::kElementwise},
    {"gelu", C::kElementwise},
    {"glu", C::kElementwise},
    {"grid_sampler_2d", C::kGather},
    {"grid_sampler_3d", C::kGather},
    {"group_norm", C::kNormalization},
    {"gt", C::kElementwise},
    {"hardshrink", C::kElementwise},
    {"hardsigmoid", C::kElementwise},
    {"hardswish", C::kElementwise},
    {"hardtanh", C::kElementwise},
    {"huber_loss", C::kReduction},
    {"im2col", C::kCopy},
    {"index", C::kGather},
    {"index_add", C::kGather},
    {"index_copy", C::kGather},
    {"index_fill", C::kGather},
    {"index_put", C::kGather},
    {"index_select", C::kGather},
    {"instance_norm", C::kNormalization},
    {"isfinite", C::kElementwise},
    {"isinf", C::kElementwise},
    {"isnan", C::kElementwise},
    {"l1_loss", C::kReduction},
    {"layer_norm", C::kNormalization},
    {"le", C::kElementwise},
    {"leaky_relu", C::kElementwise},
    {"lerp", C::kElementwise},
    {"linalg_vector_norm", C::kReduction},
    {"linear", C::kGemm},
    {"linspace", C::kFill},
    {"log", C::kElementwise},
    {"log1p", C::kElementwise},
    {"log2", C::kElementwise},
    {"log_sigmoid", C::kElementwise},
    {"log_sigmoid_forward", C::kElementwise},
    {"logical_and", C::kElementwise},
    {"logical_not", C::kElementwise},
    {"logical_or", C::kElementwise},
    {"logical_xor", C::kElementwise},
    {"logsumexp", C::kReduction},
    {"lt", C::kElementwise},
    {"masked_fill", C::kElementwise},
    {"masked_scatter", C::kGather},
    {"masked_select", C::kGather},
    {"matmul", C::kGemm},
    {"max", C::kReduction},
    {"max_pool2d_with_indices", C::kPooling},
    {"max_pool3d_with_indices", C::kPooling},
    {"max_unpool2d", C::kPooling},
    {"maximum", C::kElementwise},
    {"mean", C::kReduction},
    {"median", C::kReduction},
    {"min", C::kReduction},
    {"minimum", C::kElementwise},
    {"mish", C::kElementwise},
    {"mm", C::kGemm},
    {"mse_loss", C::kReduction},
    {"mul", C::kElementwise},
    {"multi_margin_loss", C::kReduction},
    {"multinomial", C::kReduction},
    {"mv", C::kGemm},
    {"nan_to_num", C::kElementwise},
    {"native_batch_norm", C::kNormalization},
    {"native_dropout", C::kElementwise},
    {"native_group_norm", C::kNormalization},
    {"native_layer_norm", C::kNormalization},
    {"ne", C::kElementwise},
    {"neg", C::kElementwise},
    {"new_full", C::kFill},
    {"new_ones", C::kFill},
    {"new_zeros", C::kFill},
    {"nll_loss", C::kReduction},
    {"nll_loss2d", C::kReduction},
    {"nll_loss2d_forward", C::kReduction},
    {"nll_loss_forward", C::kReduction},
    {"nonzero", C::kReduction},
    {"norm", C::kReduction},
    {"normal", C::kFill},
    {"one_hot", C::kGather},
    {"ones", C::kFill},
    {"ones_like", C::kFill},
    {"pixel_shuffle", C::kCopy},
    {"pixel_unshuffle", C::kCopy},
    {"pow", C::kElementwise},
    {"prelu", C::kElementwise},
    {"prod", C::kReduction},
    {"rand", C::kFill},
    {"rand_like", C::kFill},
    {"randint", C::kFill},
    {"randn", C::kFill},
    {"randn_like", C::kFill},
    {"randperm", C::kFill},
    {"reciprocal", C::kElementwise},
    {"reflection_pad1d", C::kCopy},
    {"reflection_pad2d", C::kCopy},
    {"relu", C::kElementwise},
    {"remainder", C::kElementwise},
    {"repeat", C::kCopy},
    {"repeat_interleave", C::kGather},
    {"replication_pad2d", C::kCopy},
    {"roll", C::kCopy},
    {"round", C::kElementwise},
    {"rrelu_with_noise", C::kElementwise},
    {"rsqrt", C::kElementwise},
    {"rsub", C::kElementwise},
    {"scalar_tensor", C::kFill},
    {"scatter", C::kGather},
    {"scatter_add", C::kGather},
    {"scatter_reduce", C::kGather},
    {"select", C::kCopy},
    {"select_scatter", C::kCopy},
    {"sgn", C::kElementwise},
    {"sigmoid", C::kElementwise},
    {"sign", C::kElementwise},
    {"silu", C::kElementwise},
    {"sin", C::kElementwise},
    {"slice", C::kCopy},
    {"slice_scatter", C::kCopy},
    {"slow_conv_dilated2d", C::kConvolution},
    {"slow_conv_transpose2d", C::kConvolution},
    {"smooth_l1_loss", C::kReduction},
    {"soft_margin_loss", C::kReduction},
    {"softplus", C::kElementwise},
    {"softshrink", C::kElementwise},
    {"sort", C::kReduction},
    {"split_with_sizes_copy", C::kCopy},
    {"sqrt", C::kElementwise},
    {"square", C::kElementwise},
    {"stack", C::kCopy},
    {"std", C::kReduction},
    {"std_mean", C::kReduction},
    {"sub", C::kElementwise},
    {"sum", C::kReduction},
    {"tanh", C::kElementwise},
    {"threshold", C::kElementwise},
    {"topk", C::kReduction},
    {"tril", C::kElementwise},
    {"triu", C::kElementwise},
    {"trunc", C::kElementwise},
    {"unfold", C::kCopy},
    {"uniform", C::kFill},
    {"upsample_bicubic2d", C::kResample},
    {"upsample_bilinear2d", C::kResample},
    {"upsample_linear1d", C::kResample},
    {"upsample_nearest1d", C::kResample},
    {"upsample_nearest2d", C::kResample},
    {"upsample_nearest3d", C::kResample},
    {"upsample_trilinear3d", C::kResample},
    {"value_selecting_reduction", C::kGather},
    {"var", C::kReduction},
    {"var_mean", C::kReduction},
    {"where", C::kElementwise},
    {"xlogy", C::kElementwise},
    {"zero", C::kFill},
    {"zeros", C::kFill},
    {"zeros_like", C::kFill},
});

constexpr bool sorted_by_stem() {
  for (std::size_t i = 1; i < kRules.size(); ++i) {
    if (!(kRules[i - 1].stem < kRules[i].stem)) return false;
  }
  return true;
}
static_assert(sorted_by_stem());

std::string_view stem_of(std::string_view name) {
  if (const auto colons = name.find("::"); colons != std::string_view::npos)
    name.remove_prefix(colons + 2);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

const Rule* find_rule(std::string_view stem) {
  const auto it =
      std::lower_bound(kRules.begin(), kRules.end(), stem,
                       [](const Rule& rule, std::string_view s) { return rule.stem < s; });
  return it != kRules.end() && it->stem == stem ? &*it : nullptr;
}

}  // namespace

KernelClass class_of(std::string_view operator_name) {
  if (operator_name.starts_with("stoker::attention")) return KernelClass::kAttention;
  if (operator_name.starts_with("stoker::")) {
    return operator_name.find("_copy_") != std::string_view::npos ? KernelClass::kCopy
                                                                  : KernelClass::kCollective;
  }
  std::string_view stem = stem_of(operator_name);
  if (stem.starts_with("_scaled_dot_product") || stem.starts_with("_flash_attention") ||
      stem.starts_with("_efficient_attention")) {
    return KernelClass::kAttention;
  }
  if (stem.starts_with("_foreach_") || stem.starts_with("_fused_adam") ||
      stem.starts_with("_fused_sgd")) {
    return KernelClass::kOptimizer;
  }
  if (stem.starts_with("_thnn_fused")) return KernelClass::kElementwise;
  if (const Rule* rule = find_rule(stem)) return rule->kernel_class;
  for (const std::string_view suffix : {"_backward", "_copy"}) {
    if (!stem.ends_with(suffix)) continue;
    if (const Rule* rule = find_rule(stem.substr(0, stem.size() - suffix.size())))
      return rule->kernel_class;
  }
  return KernelClass::kUncosted;
}

bool launches_nothing(std::string_view operator_name) {
  constexpr std::array kSilent = {std::string_view("empty"),
                                  std::string_view("empty_like"),
                                  std::string_view("empty_strided"),
                                  std::string_view("new_empty"),
                                  std::string_view("new_empty_strided"),
                                  std::string_view("detach"),
                                  std::string_view("alias"),
                                  std::string_view("lift_fresh"),
                                  std::string_view("_unsafe_view"),
                                  std::string_view("set"),
                                  std::string_view("resize"),
                                  std::string_view("record_stream"),
                                  std::string_view("_local_scalar_dense"),
                                  std::string_view("_reshape_alias"),
                                  std::string_view("view"),
                                  std::string_view("empty_permuted"),
                                  std::string_view("as_strided")};
  return std::find(kSilent.begin(), kSilent.end(), stem_of(operator_name)) != kSilent.end();
}

}  // namespace stoker
