#include "device/figure_kinds.h"

#include <array>

namespace stoker {
namespace {

/// Host work on one operator: from a nanosecond to a second.
constexpr Range kHostUs{1e-3, 1e6, "us"};
/// One page, or one parallel region.
constexpr Range kPageUs{1e-3, 1e5, "us", true};
constexpr Range kCopyGbs{0.01, 1e6, "GB/s"};
constexpr Range kGigaflops{1e-3, 1e9, "GFLOP/s"};
constexpr Range kMebibytes{0, 1e7, "MiB", true};
/// Measured over forecast time, learned from training runs: beyond these something else is wrong.
constexpr Range kPace{0.05, 20, "times the forecast"};

constexpr std::array<FigureKind, 31> kKinds{{
    {"forward_us", kHostUs, true, "host work on one operator of the forward pass"},
    {"backward_us", kHostUs, true, "host work on one operator of the backward pass"},
    {"optimizer_us", kHostUs, true, "host work on one operator of an optimizer's loop"},
    {"view_us", kHostUs, true, "an operator that only makes a view"},
    {"step_us", kHostUs, true, "what a step costs besides its operators"},
    {"call_us", kHostUs, true, "the smallest operator called from Python; in all their times"},
    {"region_us", kPageUs, true, "opening and closing a parallel region"},
    {"fault_us", kPageUs, true, "the first touch of a page of 4 KiB"},
    {"copy_gbs", kCopyGbs, true, "memory bandwidth, reads and writes together"},
    {"l2_gbs", kCopyGbs, true, "bandwidth within the second-level cache"},
    {"l3_gbs", kCopyGbs, true, "bandwidth within the last-level cache"},
    {"fma_gflops", kGigaflops, true, "a large matrix product"},
    {"context_mib", kMebibytes, false, "the process before the model, or a GPU's context"},
    {"step_pace", kPace, true, "learned: a step"},
    {"host_pace", kPace, true, "learned: PyTorch and Python around operators"},
    {"gemm_pace", kPace, true, "learned: matrix products"},
    {"convolution_pace", kPace, true, "learned: convolutions"},
    {"depthwise_convolution_pace", kPace, true, "learned: depthwise convolutions"},
    {"attention_pace", kPace, true, "learned: attention"},
    {"normalization_pace", kPace, true, "learned: batch and layer normalization"},
    {"softmax_pace", kPace, true, "learned: softmax"},
    {"reduction_pace", kPace, true, "learned: reductions"},
    {"elementwise_pace", kPace, true, "learned: element-wise operators"},
    {"gather_pace", kPace, true, "learned: embeddings and other gathers"},
    {"pooling_pace", kPace, true, "learned: pooling"},
    {"resample_pace", kPace, true, "learned: resampling"},
    {"rnn_pace", kPace, true, "learned: recurrent layers"},
    {"copy_pace", kPace, true, "learned: copies"},
    {"optimizer_pace", kPace, true, "learned: the optimizer's operators"},
    {"fill_pace", kPace, true, "learned: fills"},
    {"uncosted_pace", kPace, true, "learned: operators without a rule"},
}};

}  // namespace

std::span<const FigureKind> figure_kinds() { return kKinds; }

bool is_learned(std::string_view name) { return name.ends_with("_pace"); }

const FigureKind* figure_kind(std::string_view name) {
  for (const FigureKind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace stoker
