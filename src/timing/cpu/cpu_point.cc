#include "timing/cpu/cpu_point.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "timing/learned/measured_operator.h"

namespace stoker {
namespace {

/// Doublings of a size within which residuals resemble each other, by what the size is of. Chosen
/// by leaving rows out (docs/models/cpu-time.md).
constexpr double kSide = 3, kChannels = 2.5, kPixels = 3, kWindow = 1.5, kElements = 3,
                 kRatio = 1.5, kWidth = 3, kLength = 2.5;
constexpr double kPlace = 1;   ///< what it counts for where the bytes come from
constexpr double kFlag = 0.7;  ///< what a transposition, a stride or a mask counts for

double doublings(double n) { return std::log2(std::max(n, 1.0)); }
double doublings(std::int64_t n) { return doublings(static_cast<double>(n)); }
double flag(bool on) { return on ? kFlag : 0; }

using Features = std::array<double, kProcessFeatures>;

Features features_of(const GemmShape& g) {
  return {doublings(g.m) / kSide,     doublings(g.n) / kSide, doublings(g.k) / kSide,
          doublings(g.batch) / kSide, flag(g.transpose_a),    flag(g.transpose_b)};
}

Features features_of(const ConvolutionShape& c) {
  const auto groups = std::max<std::int64_t>(1, c.groups);
  const std::int64_t out = c.out[0] * c.out[1] * c.out[2];
  const std::int64_t window = c.kernel[0] * c.kernel[1] * c.kernel[2];
  return {doublings(c.in_channels / groups) / kChannels,
          doublings(c.out_channels / groups) / kChannels,
          doublings(groups) / kSide,
          doublings(out) / kPixels,
          doublings(window) / kWindow,
          doublings(c.batch) / kSide,
          flag(c.stride[0] > 1),
          flag(c.channels_last)};
}

Features features_of(const AttentionShape& a) {
  return {doublings(a.batch * a.heads) / kSide, doublings(a.query_length) / kLength,
          doublings(a.key_length) / kLength, doublings(a.head_dim) / kLength, flag(a.causal)};
}

Features features_of_bytes(const Kernel& kernel) {
  const double elements = std::max(1.0, static_cast<double>(kernel.elements));
  const auto bytes = static_cast<double>((kernel.read + kernel.written).count());
  Features f{doublings(elements) / kElements, doublings(64 * bytes / elements) / kRatio};
  f[2] = flag(kernel.strided);
  if (const auto* rows = std::get_if<RowShape>(&kernel.shape))
    f[3] = doublings(rows->width) / kWidth;
  if (kernel.kernel_class == KernelClass::kPooling)
    f[4] = doublings(64 * kernel.flops.count() / elements) / kRatio;
  return f;
}

/// What functions of a family do alike. Products are one family whatever their name, and
/// attention's functions are told by their pass.
std::string_view family_of(std::string_view function, const Kernel& kernel) {
  if (std::holds_alternative<GemmShape>(kernel.shape)) return "product";
  if (const auto* a = std::get_if<AttentionShape>(&kernel.shape))
    return a->backward ? "attention_backward" : "attention";
  if (const auto* c = std::get_if<ConvolutionShape>(&kernel.shape)) {
    return c->pass == Pass::kForward         ? "convolution"
           : c->pass == Pass::kBackwardInput ? "convolution_input"
                                             : "convolution_weight";
  }
  if (function.ends_with('_')) function.remove_suffix(1);
  return function;
}

std::string_view member_of(std::string_view function, const Kernel& kernel) {
  if (const auto* g = std::get_if<GemmShape>(&kernel.shape)) return g->batch > 1 ? "bmm" : "mm";
  if (kernel.shape.index() != 0 && !std::holds_alternative<RowShape>(kernel.shape))
    return family_of(function, kernel);
  return function;
}

std::int64_t size_or(const MeasuredOperator& measured, const char* name, std::int64_t absent) {
  const auto found = measured.sizes.find(name);
  return found == measured.sizes.end() || found->second <= 0 ? absent : found->second;
}

void set_words(Kernel& kernel, double read, double written) {
  const int size = size_of(kernel.dtype);
  kernel.read = Bytes(static_cast<std::int64_t>(read * size));
  kernel.written = Bytes(static_cast<std::int64_t>(written * size));
}

/// A window's result has `elements`; its input stride^2 times as many. The maximum's index takes 8
/// bytes, two words.
void fill_pooling(const MeasuredOperator& measured, Kernel& kernel) {
  const auto elements = static_cast<double>(size_or(measured, "elements", 1));
  const auto side = static_cast<double>(size_or(measured, "kernel", 1));
  const auto stride = static_cast<double>(size_or(measured, "stride", 1));
  const bool backward = measured.function.find("_backward") != std::string::npos;
  const bool indices = measured.function.find("_with_indices") != std::string::npos;
  const double whole = backward ? elements : elements * stride * stride;
  const double less = backward ? elements / (stride * stride) : elements;
  const double results = less * (indices ? 3 : 1);
  kernel.elements = static_cast<std::int64_t>(whole);
  kernel.flops = Flops(less * side * side);
  if (backward) set_words(kernel, results, whole * (indices ? 2 : 1));
  else set_words(kernel, whole, results);
}

void correct_words(const MeasuredOperator& measured, Kernel& kernel) {
  const auto n = static_cast<double>(kernel.elements);
  const bool backward = measured.pass == "backward";
  if (measured.kind == "pooling") {
    fill_pooling(measured, kernel);
  } else if (measured.kind == "batch_norm") {
    set_words(kernel, 2 * n, n);  // moments first; backward: the gradient and the input
  } else if (measured.kind == "softmax" && backward) {
    set_words(kernel, 2 * n, n);
    kernel.flops = Flops(4 * n);
  } else if (measured.kind == "gather" && measured.function == "embedding_dense_backward") {
    const auto table = static_cast<double>(size_or(measured, "table", 1));
    set_words(kernel, n, table + std::min(table, n));
    kernel.elements = static_cast<std::int64_t>(std::max(table, n));
  } else if (measured.kind == "reduction" && measured.function == "nll_loss_backward") {
    set_words(kernel, 0, n);
  } else if (measured.kind == "copy" && measured.function == "_to_copy") {
    kernel.written = kernel.read / 2;  // FP32 to BF16
  }
  // As they are measured: a transpose made contiguous, a bias's gradient.
  kernel.strided = measured.function == "clone" || measured.function == "sum";
  kernel.launches = 1;
}

}  // namespace

std::uint32_t NameNumbers::of(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(numbers_.size());
  numbers_.emplace(std::string(name), number);
  return number;
}

ProcessPoint point_of(const Kernel& kernel, std::string_view function, int threads,
                      const CpuCost& cost, NameNumbers& names) {
  ProcessPoint point;
  point.family = names.of(family_of(function, kernel));
  point.function = names.of(member_of(function, kernel));
  point.log_threads = doublings(static_cast<double>(threads));
  if (const auto* g = std::get_if<GemmShape>(&kernel.shape)) {
    point.features = features_of(*g);
    point.size = doublings(kernel.flops.count());
  } else if (const auto* c = std::get_if<ConvolutionShape>(&kernel.shape)) {
    point.features = features_of(*c);
    point.size = doublings(kernel.flops.count());
  } else if (const auto* a = std::get_if<AttentionShape>(&kernel.shape)) {
    point.features = features_of(*a);
    point.size = doublings(kernel.flops.count());
  } else {
    point.features = features_of_bytes(kernel);
    point.size = doublings(static_cast<double>((kernel.read + kernel.written).count()));
  }
  point.features[kProcessFeatures - 2] = kPlace * cost.near_share();
  point.features[kProcessFeatures - 1] = kPlace * cost.far_share();
  return point;
}

Result<Kernel> cpu_kernel_of(const MeasuredOperator& measured, const Cpu& cpu) {
  auto kernel = kernel_of(measured, cpu);
  if (!kernel) return kernel;
  if (kernel->shape.index() == 0 || std::holds_alternative<RowShape>(kernel->shape))
    correct_words(measured, *kernel);
  return kernel;
}

}  // namespace stoker
