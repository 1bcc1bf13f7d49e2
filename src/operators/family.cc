#include "operators/family.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

using K = KernelClass;
using W = WorkRule;

// clang-format off
constexpr auto kFamilies = std::to_array<OperatorFamily>({
    {"product", K::kGemm, W::kProduct, "_int_mm _scaled_mm bmm matmul mm mv"},
    {"product_and_sum", K::kGemm, W::kProductAndSum,
     "_addmm_activation addmm addmv baddbmm"},
    {"linear", K::kGemm, W::kLinear, "linear"},
    {"summed_batch", K::kGemm, W::kSummedBatch, "addbmm"},
    {"convolution", K::kConvolution, W::kConvolution,
     "_conv_depthwise2d _slow_conv2d _slow_conv2d_forward conv_depthwise3d convolution "
     "convolution_overrideable cudnn_convolution cudnn_convolution_add_relu "
     "cudnn_convolution_relu miopen_convolution miopen_depthwise_convolution slow_conv3d "
     "slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d"},
    {"transposed_convolution", K::kConvolution, W::kTransposedConvolution,
     "cudnn_convolution_transpose miopen_convolution_transpose slow_conv_transpose2d "
     "slow_conv_transpose3d"},
    {"attention", K::kAttention, W::kAttention, "_scaled_dot_product* stoker::attention*"},
    {"attention_inside", K::kAttention, W::kAttentionInside,
     "_efficient_attention* _flash_attention*"},
    {"recurrent", K::kRnn, W::kRecurrent, "_cudnn_rnn"},
    {"normalization", K::kNormalization, W::kPlain,
     "_batch_norm_no_update _batch_norm_with_update _native_batch_norm_legit "
     "_native_batch_norm_legit_functional _weight_norm_interface batch_norm "
     "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_stats "
     "cudnn_batch_norm group_norm instance_norm miopen_batch_norm renorm"},
    {"batch_norm", K::kNormalization, W::kTrainedMoments, "native_batch_norm"},
    {"group_norm", K::kNormalization, W::kMoments,
     "native_group_norm native_group_norm_backward"},
    {"layer_norm", K::kNormalization, W::kRows,
     "_fused_rms_norm layer_norm native_layer_norm rms_norm stoker::rms_norm"},
    {"layer_norm_backward", K::kNormalization, W::kRows, "native_layer_norm_backward",
     Operands::kAll, 2},
    {"softmax", K::kSoftmax, W::kRows,
     "_log_softmax _log_softmax_backward_data _masked_softmax _safe_softmax _softmax "
     "stoker::cross_entropy stoker::cross_entropy_backward "
     "stoker::cross_entropy_over_backward"},
    {"softmax_backward", K::kSoftmax, W::kSoftmaxBackward, "_softmax_backward_data"},
    {"reduction", K::kReduction, W::kPlain,
     "_cummax_helper _cummin_helper _is_all_true _is_any_true _logcumsumexp _segment_reduce all "
     "allclose amax amin aminmax any argmax argmin bincount count_nonzero cummax cummin cumprod "
     "cumsum dist dot equal histc huber_loss isin kl_div kthvalue l1_loss linalg_norm "
     "linalg_vector_norm logcumsumexp logsumexp max mean median min mode mse_loss "
     "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward multinomial "
     "nanmedian nansum nms nonzero norm poisson_nll_loss prod segment_reduce smooth_l1_loss "
     "soft_margin_loss std std_mean sum topk trace var var_mean vdot"},
    {"fused_reduction", K::kReduction, W::kPlain, "stoker::fused_reduction"},
    {"picked_rows", K::kReduction, W::kPickedRows,
     "nll_loss nll_loss2d nll_loss2d_backward nll_loss2d_forward nll_loss_backward "
     "nll_loss_forward"},
    {"sort", K::kReduction, W::kSort,
     "_unique2 argsort msort sort unique_consecutive unique_dim"},
    {"elementwise", K::kElementwise, W::kPlain,
     "__lshift__ __rshift__ _amp_update_scale _assert_async "
     "_fake_quantize_learnable_per_tensor_affine _fused_dropout _masked_scale _prelu_kernel "
     "_sample_dirichlet _standard_gamma abs acos acosh add addcdiv addcmul addr "
     "affine_grid_generator alpha_dropout angle asin asinh atan atan2 atanh "
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
     "xlogy stoker::dequantize* stoker::fused stoker::gated_activation stoker::rotary "
     "_thnn_fused* *loss_backward"},
    {"custom_kernel", K::kElementwise, W::kPlain, "stoker::kernel"},
    {"custom_products", K::kGemm, W::kPlain, "stoker::product_kernel"},
    {"fourier", K::kElementwise, W::kFourier, "_fft_c2c _fft_c2r _fft_r2c"},
    {"distances", K::kElementwise, W::kDistances, "_cdist _cdist_backward _cdist_forward"},
    {"random_mask", K::kElementwise, W::kPlain, "bernoulli",
     Operands::kFirstIsWritten},
    {"index", K::kGather, W::kPlain,
     "_embedding_bag _embedding_bag_dense _embedding_bag_forward_only "
     "_embedding_bag_per_sample_weights _unsafe_masked_index "
     "_unsafe_masked_index_put_accumulate bucketize embedding_dense embedding_renorm "
     "embedding_sparse grid_sampler_2d grid_sampler_3d one_hot repeat_interleave searchsorted "
     "value_selecting_reduction"},
    {"gather", K::kGather, W::kGather,
     "_unsafe_index embedding gather index index_select masked_select take take_along_dim"},
    {"scatter", K::kGather, W::kScatter, "index_copy index_fill masked_scatter put scatter"},
    {"scatter_add", K::kGather, W::kScatterAdd,
     "index_add index_reduce scatter_add scatter_reduce"},
    {"index_put", K::kGather, W::kSortedScatter,
     "_index_put_impl _unsafe_index_put index_put"},
    {"embedding_backward", K::kGather, W::kEmbeddingBackward,
     "_embedding_bag_dense_backward embedding_dense_backward"},
    {"index_backward", K::kGather, W::kPartOfZeros, "value_selecting_reduction_backward"},
    {"grid_backward", K::kGather, W::kAllOfZeros,
     "grid_sampler_2d_backward grid_sampler_3d_backward"},
    {"pooling", K::kPooling, W::kPlain,
     "_adaptive_avg_pool2d _adaptive_avg_pool3d _low_memory_max_pool* adaptive_avg_pool1d "
     "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
     "adaptive_max_pool3d avg_pool "
     "avg_pool1d avg_pool2d avg_pool3d fractional_max_pool2d fractional_max_pool3d max_pool2d "
     "max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool2d max_unpool3d"},
    {"pooling_backward", K::kPooling, W::kPlain,
     "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward "
     "adaptive_max_pool3d_backward avg_pool2d_backward avg_pool3d_backward",
     Operands::kSecondIsSizes},
    {"max_pooling_backward", K::kPooling, W::kAllOfZeros,
     "max_pool2d_with_indices_backward max_pool3d_with_indices_backward",
     Operands::kSecondIsSizes},
    {"resample", K::kResample, W::kPlain,
     "_roi_align _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d ps_roi_align roi_align roi_pool "
     "upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d "
     "upsample_nearest2d upsample_nearest3d upsample_trilinear3d"},
    {"resample_backward", K::kResample, W::kAllOfZeros,
     "_upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa_backward "
     "upsample_bicubic2d_backward upsample_bilinear2d_backward upsample_linear1d_backward "
     "upsample_trilinear3d_backward"},
    {"copy", K::kCopy, W::kPlain,
     "_cat _conj_physical _neg_view_copy _nested_from_padded _pack_padded_sequence "
     "_pad_packed_sequence _reshape_copy _stack _to_copy as_strided_scatter block_diag cat "
     "channel_shuffle clone col2im constant_pad_nd convert_element_type diag diag_embed "
     "diagonal diagonal_scatter expand_copy flip im2col native_channel_shuffle permute_copy "
     "pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d repeat "
     "replication_pad1d replication_pad2d replication_pad3d roll rot90 select select_scatter "
     "slice slice_scatter split_with_sizes_copy stack transpose_copy unfold unfold_copy "
     "view_copy stoker::all_gather_copy_in stoker::all_gather_copy_out stoker::flatten_copy_in "
     "stoker::reduce_scatter_copy_in"},
    {"copy_into", K::kCopy, W::kPlain, "copy",
     Operands::kFirstIsWritten},
    {"offload", K::kHostToDevice, W::kPlain, "stoker::gradient_to_host stoker::shard_to_device"},
    {"view_backward", K::kCopy, W::kPartOfZeros,
     "diagonal_backward select_backward slice_backward unfold_backward"},
    {"padding_backward", K::kCopy, W::kPlain,
     "reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward "
     "replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward",
     Operands::kSecondIsSizes},
    {"fill", K::kFill, W::kPlain,
     "arange cauchy exponential eye fill full full_like geometric iota linspace log_normal "
     "new_full new_ones new_zeros normal ones ones_like rand rand_like randint randint_like "
     "randn randn_like random randperm scalar_tensor tril_indices triu_indices uniform zero "
     "zeros zeros_like"},
    {"optimizer", K::kOptimizer, W::kPlain,
     "_amp_foreach_non_finite_check_and_unscale _foreach_* _fused_adagrad* _fused_adam* "
     "_fused_sgd*"},
    {"all_gather", K::kCollective, W::kCollective, "stoker::all_gather",
     Operands::kAll, 1, CollectiveKind::kAllGather},
    {"reduce_scatter", K::kCollective, W::kCollective, "stoker::reduce_scatter",
     Operands::kAll, 1, CollectiveKind::kReduceScatter},
    {"all_reduce", K::kCollective, W::kCollective, "stoker::all_reduce",
     Operands::kAll, 1, CollectiveKind::kAllReduce},
    {"broadcast", K::kCollective, W::kCollective, "stoker::broadcast",
     Operands::kAll, 1, CollectiveKind::kBroadcast},
    {"reduce", K::kCollective, W::kCollective, "stoker::reduce",
     Operands::kAll, 1, CollectiveKind::kReduce},
    {"scatter_from_one", K::kCollective, W::kCollective, "stoker::scatter",
     Operands::kAll, 1, CollectiveKind::kScatter},
    {"gather_to_one", K::kCollective, W::kCollective, "stoker::gather stoker::*",
     Operands::kAll, 1, CollectiveKind::kGather},
    {"uncosted", K::kUncosted, W::kPlain, ""},
    {"strided_backward", K::kUncosted, W::kPartOfZeros, "as_strided_backward"},
    {"onednn_recurrent", K::kUncosted, W::kOneDnnRecurrent, "mkldnn_rnn_layer*"},
    {"nothing", K::kUncosted, W::kNothing,
     "_local_scalar_dense _reshape_alias _unsafe_view alias as_strided detach empty empty_like "
     "empty_permuted empty_strided lift_fresh new_empty new_empty_strided record_stream resize "
     "set squeeze t transpose unsqueeze view"},
});
// clang-format on

/// Calls `visit(name, family)` for every name of the table.
template <class Visit>
constexpr void visit_names(Visit&& visit) {
  for (std::size_t family = 0; family < kFamilies.size(); ++family) {
    std::string_view rest = kFamilies[family].operators;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      visit(rest.substr(0, end), family);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

constexpr bool is_pattern(std::string_view name) {
  return name.starts_with('*') || name.ends_with('*');
}

constexpr std::size_t count_names(bool patterns) {
  std::size_t count = 0;
  visit_names([&](std::string_view name, std::size_t) { count += is_pattern(name) == patterns; });
  return count;
}

struct Named {
  std::string_view name;
  std::size_t family = 0;
};

template <std::size_t N>
constexpr std::array<Named, N> names_of(bool patterns) {
  std::array<Named, N> names;
  std::size_t next = 0;
  visit_names([&](std::string_view name, std::size_t family) {
    if (is_pattern(name) == patterns) names[next++] = {name, family};
  });
  return names;
}

constexpr auto kPatterns = names_of<count_names(true)>(true);  ///< in the table's order

constexpr auto kNames = [] {
  auto names = names_of<count_names(false)>(false);
  std::sort(names.begin(), names.end(),
            [](const Named& a, const Named& b) { return a.name < b.name; });
  return names;
}();

constexpr bool names_are_unique() {
  for (std::size_t i = 1; i < kNames.size(); ++i) {
    if (kNames[i - 1].name == kNames[i].name || kNames[i].name.empty()) return false;
  }
  return true;
}
static_assert(names_are_unique());

/// By class, its first row.
constexpr auto kPlainFamilies = [] {
  std::array<const OperatorFamily*, kKernelClasses> plain{};
  for (std::size_t i = kFamilies.size(); i-- > 0;)
    plain[static_cast<std::size_t>(kFamilies[i].kernel_class)] = &kFamilies[i];
  return plain;
}();

const OperatorFamily& plain_family(KernelClass kernel_class) {
  return *kPlainFamilies[static_cast<std::size_t>(kernel_class)];
}

/// Whether a row speaks for `_backward` and `_copy` forms of its names too.
bool covers_derived(const OperatorFamily& family) {
  switch (family.rule) {
    case WorkRule::kPlain:
    case WorkRule::kRows:
    case WorkRule::kProduct:
    case WorkRule::kProductAndSum:
    case WorkRule::kConvolution:
    case WorkRule::kTransposedConvolution:
    case WorkRule::kAttention:
    case WorkRule::kAttentionInside:
    case WorkRule::kRecurrent:
      return family.operands == Operands::kAll;
    default:
      return false;
  }
}

const OperatorFamily* find_name(std::string_view name) {
  const auto it = std::ranges::lower_bound(kNames, name, {}, &Named::name);
  return it != kNames.end() && it->name == name ? &kFamilies[it->family] : nullptr;
}

const OperatorFamily* find_pattern(std::string_view name) {
  for (const Named& pattern : kPatterns) {
    const bool begins = pattern.name.ends_with('*');
    const auto fixed =
        begins ? pattern.name.substr(0, pattern.name.size() - 1) : pattern.name.substr(1);
    if (begins ? name.starts_with(fixed) : name.ends_with(fixed)) return &kFamilies[pattern.family];
  }
  return nullptr;
}

const OperatorFamily* find_derived(std::string_view name) {
  for (const std::string_view suffix : {"_backward", "_copy"}) {
    if (!name.ends_with(suffix)) continue;
    const OperatorFamily* base = find_name(name.substr(0, name.size() - suffix.size()));
    if (base != nullptr) return covers_derived(*base) ? base : &plain_family(base->kernel_class);
  }
  return nullptr;
}

std::string_view namespace_of(std::string_view name) {
  const std::size_t colons = name.find("::");
  return name.substr(0, colons == std::string_view::npos ? 0 : colons);
}

}  // namespace

std::span<const OperatorFamily> operator_families() { return kFamilies; }

const OperatorFamily& family_of(std::string_view operator_name) {
  const std::string_view space = namespace_of(operator_name), stem = stem_of(operator_name);
  const bool own = space == "stoker";
  const bool known = own || space == "aten" || space == "prims" || space == "torchvision";
  const std::string_view name = own ? operator_name.substr(0, operator_name.find('.')) : stem;
  if (known) {
    if (const OperatorFamily* family = find_name(name)) return *family;
    if (const OperatorFamily* family = find_pattern(name)) return *family;
    if (const OperatorFamily* family = find_derived(name)) return *family;
  } else if (const OperatorFamily* family = find_name(stem)) {
    // Whoever makes it, an empty tensor is no kernel.
    if (family->rule == WorkRule::kNothing) return *family;
  }
  return plain_family(KernelClass::kUncosted);
}

std::string_view function_of(std::string_view name) {
  if (const auto colons = name.find("::"); colons != std::string_view::npos)
    name.remove_prefix(colons + 2);
  return name.substr(0, name.find('.'));
}

std::string_view stem_of(std::string_view name) {
  name = function_of(name);
  // `__lshift__` is no in-place form.
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  return name;
}

}  // namespace stoker
