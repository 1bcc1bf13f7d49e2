#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "operators/describer.h"

namespace stoker {
namespace {

/// Operators of one class: names without namespace, overload, the underscore of in-place forms and
/// `_backward`, as in PyTorch's aten/src/ATen/native/native_functions.yaml.
struct Family {
  KernelClass kernel_class;
  std::string_view names;  ///< blank-separated
};

// clang-format off
constexpr auto kFamilies = std::to_array<Family>({
    {KernelClass::kGemm,
     "_addmm_activation _int_mm _scaled_mm addbmm addmm addmv baddbmm bmm linear matmul "
     "mm mv"},
    {KernelClass::kConvolution,
     "_conv_depthwise2d _slow_conv2d _slow_conv2d_forward conv_depthwise3d convolution "
     "convolution_overrideable cudnn_convolution cudnn_convolution_add_relu "
     "cudnn_convolution_relu cudnn_convolution_transpose miopen_convolution "
     "miopen_convolution_transpose miopen_depthwise_convolution slow_conv3d "
     "slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d "
     "slow_conv_transpose3d"},
    {KernelClass::kNormalization,
     "_batch_norm_no_update _batch_norm_with_update _fused_rms_norm _native_batch_norm_legit "
     "_native_batch_norm_legit_functional _weight_norm_interface batch_norm "
     "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_stats "
     "cudnn_batch_norm group_norm instance_norm layer_norm miopen_batch_norm native_batch_norm "
     "native_group_norm native_layer_norm renorm rms_norm"},
    {KernelClass::kSoftmax,
     "_log_softmax _log_softmax_backward_data _masked_softmax _safe_softmax _softmax "
     "_softmax_backward_data"},
    {KernelClass::kReduction,
     "_cummax_helper _cummin_helper _logcumsumexp _segment_reduce _unique2 all allclose amax "
     "amin aminmax any argmax argmin argsort bincount count_nonzero cummax cummin cumprod "
     "cumsum dist dot equal histc huber_loss isin kl_div kthvalue l1_loss linalg_norm "
     "linalg_vector_norm logcumsumexp logsumexp max mean median min mode mse_loss msort "
     "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward multinomial "
     "nanmedian nansum nll_loss nll_loss2d nll_loss2d_forward nll_loss_forward nms nonzero "
     "norm poisson_nll_loss prod segment_reduce smooth_l1_loss soft_margin_loss sort std "
     "std_mean sum topk trace unique_consecutive unique_dim var var_mean vdot"},
    {KernelClass::kElementwise,
     "__lshift__ __rshift__ _amp_update_scale _assert_async _cdist _cdist_forward "
     "_fake_quantize_learnable_per_tensor_affine _fft_c2c _fft_c2r _fft_r2c _fused_dropout "
     "_masked_scale _prelu_kernel _sample_dirichlet _standard_gamma abs acos acosh add addcdiv "
     "addcmul addr affine_grid_generator alpha_dropout angle asin asinh atan atan2 atanh bernoulli "
     "binary_cross_entropy binary_cross_entropy_with_logits binomial bitwise_and "
     "bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu "
     "clamp clamp_max clamp_min complex copysign cos cosh cross deg2rad dequantize digamma div "
     "dropout elu eq erf erfc erfinv exp exp2 expm1 fake_quantize_per_channel_affine_cachemask "
     "fake_quantize_per_tensor_affine_cachemask float_power floor floor_divide fmax fmin fmod "
     "frac ge gelu glu gt hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 "
     "isfinite isinf isnan isneginf isposinf le leaky_relu lerp lgamma linalg_cross log log10 "
     "log1p log2 log_sigmoid log_sigmoid_forward logaddexp logaddexp2 logical_and logical_not "
     "logical_or logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num "
     "native_dropout ne neg poisson polar polygamma pow prelu quantize_per_tensor rad2deg "
     "reciprocal relu remainder round rrelu_with_noise rsqrt rsub sgn sigmoid sign signbit "
     "silu sin sinc sinh softplus softshrink special_entr special_erfcx special_log_ndtr "
     "special_xlog1py special_zeta sqrt square sub tan tanh threshold tril triu trunc where "
     "xlogy"},
    {KernelClass::kGather,
     "_embedding_bag _embedding_bag_dense _embedding_bag_forward_only "
     "_embedding_bag_per_sample_weights _index_put_impl _unsafe_index _unsafe_index_put "
     "_unsafe_masked_index _unsafe_masked_index_put_accumulate bucketize embedding "
     "embedding_dense embedding_renorm embedding_sparse gather grid_sampler_2d grid_sampler_3d "
     "index index_add index_copy index_fill index_put index_reduce index_select masked_scatter "
     "masked_select one_hot put repeat_interleave scatter scatter_add scatter_reduce "
     "searchsorted take take_along_dim value_selecting_reduction"},
    {KernelClass::kPooling,
     "_adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
     "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d avg_pool "
     "avg_pool1d avg_pool2d avg_pool3d fractional_max_pool2d fractional_max_pool3d max_pool2d "
     "max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d"},
    {KernelClass::kResample,
     "_roi_align _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d ps_roi_align roi_align roi_pool "
     "upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d "
     "upsample_nearest2d upsample_nearest3d upsample_trilinear3d"},
    {KernelClass::kRnn,
     "_cudnn_rnn"},
    {KernelClass::kCopy,
     "_cat _conj_physical _neg_view_copy _nested_from_padded _pack_padded_sequence "
     "_pad_packed_sequence _reshape_copy _stack _to_copy as_strided_scatter block_diag cat "
     "channel_shuffle clone col2im constant_pad_nd convert_element_type copy diag diag_embed "
     "diagonal diagonal_scatter expand_copy flip im2col native_channel_shuffle permute_copy "
     "pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat "
     "replication_pad1d replication_pad2d replication_pad3d roll rot90 select select_scatter "
     "slice slice_scatter split_with_sizes_copy stack transpose_copy unfold unfold_copy "
     "view_copy"},
    {KernelClass::kFill,
     "arange cauchy exponential eye fill full full_like geometric iota linspace log_normal "
     "new_full new_ones new_zeros normal ones ones_like rand rand_like randint randint_like "
     "randn randn_like random randperm scalar_tensor tril_indices triu_indices uniform zero "
     "zeros zeros_like"},
    {KernelClass::kOptimizer,
     "_amp_foreach_non_finite_check_and_unscale _fused_adagrad"},
});
// clang-format on

struct Rule {
  std::string_view stem;
  KernelClass kernel_class;
};

constexpr std::size_t count_names() {
  std::size_t count = 0;
  for (const Family& family : kFamilies) {
    count +=
        1 + static_cast<std::size_t>(std::count(family.names.begin(), family.names.end(), ' '));
  }
  return count;
}

/// Every name with its class, sorted by name.
constexpr auto make_rules() {
  std::array<Rule, count_names()> rules;
  std::size_t next = 0;
  for (const Family& family : kFamilies) {
    std::string_view rest = family.names;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      rules[next++] = {rest.substr(0, end), family.kernel_class};
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::sort(rules.begin(), rules.end(),
            [](const Rule& a, const Rule& b) { return a.stem < b.stem; });
  return rules;
}

constexpr auto kRules = make_rules();

constexpr bool names_are_unique() {
  for (std::size_t i = 1; i < kRules.size(); ++i) {
    if (kRules[i - 1].stem == kRules[i].stem || kRules[i].stem.empty()) return false;
  }
  return true;
}
static_assert(names_are_unique());

const Rule* find_rule(std::string_view stem) {
  const auto it =
      std::lower_bound(kRules.begin(), kRules.end(), stem,
                       [](const Rule& rule, std::string_view s) { return rule.stem < s; });
  return it != kRules.end() && it->stem == stem ? &*it : nullptr;
}

/// Another library's `add` need not be PyTorch's.
bool has_known_namespace(std::string_view name) {
  const std::size_t colons = name.find("::");
  const std::string_view space = name.substr(0, colons == std::string_view::npos ? 0 : colons);
  return space == "aten" || space == "prims" || space == "torchvision";
}

}  // namespace

KernelClass class_of(std::string_view operator_name) {
  if (operator_name.starts_with("stoker::attention")) return KernelClass::kAttention;
  if (operator_name.starts_with("stoker::")) {
    return operator_name.find("_copy_") != std::string_view::npos ? KernelClass::kCopy
                                                                  : KernelClass::kCollective;
  }
  if (!has_known_namespace(operator_name)) return KernelClass::kUncosted;
  const std::string_view stem = stem_of(operator_name);
  if (stem.starts_with("_scaled_dot_product") || stem.starts_with("_flash_attention") ||
      stem.starts_with("_efficient_attention")) {
    return KernelClass::kAttention;
  }
  if (stem.starts_with("_foreach_") || stem.starts_with("_fused_adam") ||
      stem.starts_with("_fused_sgd") || stem.starts_with("_fused_adagrad")) {
    return KernelClass::kOptimizer;
  }
  if (stem.starts_with("_thnn_fused")) return KernelClass::kElementwise;
  // Losses reduce to one number; their gradients have an element for each of the input's.
  if (stem.ends_with("loss_backward") && !stem.starts_with("nll")) return KernelClass::kElementwise;
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
