#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

namespace stoker {

enum class Pass : std::uint8_t { kForward, kBackwardInput, kBackwardWeight };

/// C[m, n] += A[m, k] B[k, n], `batch` times.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

/// Up to three spatial dimensions; unused ones are 1. `in` and `out` are the sides of the layer's
/// input and output in the forward direction, whatever the pass.
struct ConvolutionShape {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::array<std::int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      dilation{1, 1, 1};
  int spatial = 2;
  bool transposed = false;
  bool channels_last = false;
  Pass pass = Pass::kForward;
};

enum class AttentionBackend : std::uint8_t { kFlash, kMemoryEfficient, kMath };
[[nodiscard]] std::string_view name_of(AttentionBackend backend);

/// `key_heads` below `heads` is grouped-query attention; `value_dim` is the width of v and of the
/// output.
struct AttentionShape {
  std::int64_t batch = 0, heads = 0, query_length = 0, key_length = 0, head_dim = 0;
  std::int64_t key_heads = 0, value_dim = 0;
  bool causal = false;
  bool dropout = false;
  bool backward = false;
  AttentionBackend backend = AttentionBackend::kMath;
  /// Keys that a query sees before and after its place, counted from the ends; -1: all of them.
  std::int64_t before = -1, after = -1;
  /// Pairs of query and key that are computed, of one head.
  [[nodiscard]] double pairs() const;
  [[nodiscard]] bool windowed() const { return before >= 0 || after >= 0; }
};

/// One cuDNN recurrent call: layers x directions x time steps of gates GEMMs. `projection` is the
/// width of an LSTM's projected state, 0 without one.
struct RnnShape {
  std::int64_t batch = 0, length = 0, input = 0, hidden = 0, layers = 1, projection = 0;
  int gates = 3, directions = 1;
  bool backward = false;
};

enum class CollectiveKind : std::uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kBroadcast,  ///< from GPU 0 to the others
  kReduce,     ///< from the others to GPU 0
  kScatter,    ///< to each GPU its share, from GPU 0
  kGather,     ///< of each GPU its share, to GPU 0
};

/// A collective that is an operator of the step (FSDP, DataParallel); DDP's all-reduces are
/// buckets. The whole tensor is the kernel's `read` where it reduces, else `read` or `written`,
/// whichever is larger.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllGather;
  std::int64_t ranks = 1;
};

/// Reductions along rows that lie one after the other in memory: softmax, layer norm, RMS norm.
struct RowShape {
  std::int64_t rows = 0, width = 0;
};

using KernelShape = std::variant<std::monostate, GemmShape, ConvolutionShape, AttentionShape,
                                 RnnShape, CollectiveShape, RowShape>;

}  // namespace stoker
