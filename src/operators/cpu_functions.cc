#include "operators/cpu_functions.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

/// Instructions for a vector, cycles for an element and, of what oneDNN does, microseconds for a
/// call: rounded from rows on one processor with vectors of 512 bits, at its nominal clock, one
/// thread. Functions without rows there are judgement. Orders of magnitude: a machine's own rows
/// correct them.
// clang-format off
constexpr auto kFunctions = std::to_array<CpuFunction>({
    {"_adaptive_avg_pool2d", {1, 1, kAlwaysShared}},
    {"_adaptive_avg_pool2d_backward", {1, 2, kAlwaysShared}},
    {"_log_softmax", {30, 0, kSoftmaxGrain}},
    {"_log_softmax_backward_data", {28, 0, kSoftmaxGrain}}, {"_softmax", {30, 0, kSoftmaxGrain}},
    {"_softmax_backward_data", {6, 0, kSoftmaxGrain}}, {"_to_copy", {2, 0}}, {"abs", {1, 0}},
    {"add", {2, 0}}, {"addcdiv", {11, 0}}, {"addcmul", {3, 0}}, {"argmax", {2, 2}},
    {"avg_pool2d", {1, 4.5, kAlwaysShared}}, {"avg_pool2d_backward", {1, 5, kAlwaysShared}},
    {"bernoulli", {4, 15, kOneThread}}, {"binary_cross_entropy", {1, 16}},
    {"binary_cross_entropy_backward", {8, 0}}, {"binary_cross_entropy_with_logits", {30, 0}},
    {"cat", {1, 0}}, {"clone", {1, 0}}, {"copy", {1, 0}}, {"cos", {20, 0}}, {"cumsum", {1, 3}},
    {"div", {9, 0}}, {"elu", {14, 0}}, {"elu_backward", {14, 0}}, {"embedding", {2, 0.2}},
    {"embedding_dense_backward", {4, 1, kAlwaysShared}}, {"erf", {20, 0}}, {"erfinv", {27, 0}},
    {"exp", {12, 0}}, {"expm1", {13, 0}}, {"fill", {1, 0}}, {"gather", {2, 4}},
    {"gelu", {18, 0, 0, 10}}, {"gelu_backward", {34, 0, 0, 18}}, {"glu", {20, 0}},
    {"hardsigmoid", {5, 0}}, {"hardsigmoid_backward", {4, 0}}, {"hardswish", {6, 0}},
    {"hardswish_backward", {7, 0}}, {"hardtanh", {2, 0}}, {"hardtanh_backward", {3, 0}},
    {"index", {2, 4}}, {"index_add", {2, 4}}, {"index_put", {2, 8}}, {"index_select", {1, 0.2}},
    {"leaky_relu", {3, 0}}, {"leaky_relu_backward", {3, 0}}, {"lerp", {4, 0}},
    {"linalg_vector_norm", {3, 0}}, {"log", {15, 0}}, {"log1p", {10, 0}},
    {"log_sigmoid_forward", {19, 0}}, {"masked_fill", {3, 0.5}},
    {"max_pool2d_with_indices", {1, 11, kAlwaysShared}},
    {"max_pool2d_with_indices_backward", {1, 0.8, kAlwaysShared}}, {"maximum", {2, 0}},
    {"mean", {2, 0}},
    {"mish", {50, 0}}, {"mish_backward", {53, 0}}, {"mse_loss", {3, 0}},
    {"mse_loss_backward", {4, 0}}, {"mul", {2, 0}}, {"multinomial", {4, 20}},
    {"native_batch_norm", {8, 3.5, kAlwaysShared}},
    {"native_batch_norm_backward", {10, 1, kAlwaysShared}}, {"native_dropout", {6, 15, kOneThread}},
    {"native_group_norm", {8, 0, kAlwaysShared}},
    {"native_group_norm_backward", {12, 0.5, kAlwaysShared}},
    {"native_layer_norm", {20, 0, kAlwaysShared}},
    {"native_layer_norm_backward", {14, 0.7, kAlwaysShared}}, {"nll_loss_backward", {2, 0.3}},
    {"nll_loss_forward", {1, 15}}, {"normal", {10, 10}}, {"pow", {4, 0}}, {"randn", {10, 10}},
    {"reciprocal", {9, 0}},
    {"relu", {2, 0}}, {"rsqrt", {10, 0}}, {"scatter", {2, 5}}, {"scatter_add", {2, 6}},
    {"sigmoid", {18, 0}}, {"sigmoid_backward", {4, 0}}, {"silu", {20, 0}},
    {"silu_backward", {25, 0}}, {"sin", {19, 0}}, {"softplus", {22, 0}},
    {"softplus_backward", {5, 0}}, {"sort", {10, 60}}, {"sqrt", {8, 0}}, {"sub", {2, 0}},
    {"sum", {2, 0}}, {"tanh", {15, 0}}, {"tanh_backward", {4, 0}}, {"threshold_backward", {3, 0}},
    {"topk", {10, 20}}, {"uniform", {6, 6}}, {"upsample_bicubic2d", {4, 9, kAlwaysShared}},
    {"upsample_bilinear2d", {4, 2, kAlwaysShared}},
    {"upsample_bilinear2d_backward", {4, 3, kAlwaysShared}},
    {"upsample_nearest2d", {1, 1, kAlwaysShared}},
    {"upsample_nearest2d_backward", {1, 1, kAlwaysShared}}, {"var", {4, 1}}, {"where", {3, 0.5}},
    {"zero", {1, 0}},
});
// clang-format on

constexpr bool sorted() {
  for (std::size_t i = 1; i < kFunctions.size(); ++i) {
    if (!(kFunctions[i - 1].name < kFunctions[i].name)) return false;
  }
  return true;
}
static_assert(sorted());

const CpuFunction* find(std::string_view name) {
  if (name.ends_with('_')) name.remove_suffix(1);
  const auto it = std::ranges::lower_bound(kFunctions, name, {}, &CpuFunction::name);
  return it != kFunctions.end() && it->name == name ? &*it : nullptr;
}

}  // namespace

std::span<const CpuFunction> cpu_functions() { return kFunctions; }

bool has_cpu_function(std::string_view name) { return find(name) != nullptr; }

CpuUse cpu_use(std::string_view name, KernelClass kernel_class) {
  const CpuFunction* known = find(name);
  return known != nullptr ? known->use : row_of(kernel_class).cpu;
}

}  // namespace stoker
