#include "lower/cpu/cpu_convolution.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stoker {
namespace {

/// Channels of a block of oneDNN's layouts for AVX-512 (nChw16c). AVX2 blocks by 8, which pads
/// less.
constexpr std::int64_t kBlock = 16;
/// The first layer of a network reads its input as it is.
constexpr std::int64_t kFewChannels = 4;
/// PyTorch's own loops take small 1x1 filters on one thread, and single small images.
constexpr std::int64_t kBatchOfOnednn = 16;
constexpr std::int64_t kSmallPicture = 20480;

/// Beside the sums of further threads, in bytes: where they wait for each other.
constexpr std::int64_t kBarriers = 8448;

std::int64_t round_up(std::int64_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

template <class Sides>
std::int64_t product(const Sides& sides) {
  std::int64_t n = 1;
  for (const std::int64_t side : sides) n *= side;
  return n;
}

template <class Sides>
bool all_ones(const Sides& sides) {
  return std::all_of(sides.begin(), sides.end(), [](std::int64_t n) { return n == 1; });
}

class CallEmitter {
 public:
  CallEmitter(Emitter& emit, const CpuConvolution& c, const Kernel& kernel,
              const std::function<void()>& output)
      : emit_(emit), c_(c), s_(c.shape), kernel_(kernel), output_(output) {}

  void run() {
    if (c_.dtype == DType::kF32 && !onednn_takes(s_, c_.threads)) return own_loops();
    switch (s_.pass) {
      case Pass::kForward:
        return forward();
      case Pass::kBackwardInput:
        return backward_input();
      case Pass::kBackwardWeight:
        return backward_weight();
    }
  }

 private:
  [[nodiscard]] std::int64_t element() const { return size_of(c_.dtype); }
  [[nodiscard]] bool depthwise() const { return s_.groups > 1 && s_.groups == s_.in_channels; }
  [[nodiscard]] bool strided() const { return !all_ones(s_.stride) && !s_.transposed; }
  [[nodiscard]] std::int64_t plain_input() const {
    return s_.batch * s_.in_channels * product(s_.in) * element();
  }
  [[nodiscard]] std::int64_t blocked_input() const {
    return s_.batch * round_up(s_.in_channels) * product(s_.in) * element();
  }
  [[nodiscard]] std::int64_t blocked_output() const {
    return s_.batch * round_up(s_.out_channels) * product(s_.out) * element();
  }
  [[nodiscard]] std::int64_t blocked_weight(bool input_as_it_is) const {
    const std::int64_t out = round_up(s_.out_channels);
    const std::int64_t in = s_.in_channels / std::max<std::int64_t>(1, s_.groups);
    const bool padded = !depthwise() && s_.groups == 1 && !input_as_it_is;
    return out * (padded ? round_up(in) : in) * product(s_.kernel) * element();
  }
  [[nodiscard]] bool input_as_it_is() const {
    return s_.groups == 1 && s_.in_channels <= kFewChannels;
  }

  BufferId take(std::int64_t bytes) {
    const BufferId id =
        emit_.buffer({Bytes(bytes), BufferRole::kWorkspace, Stream::kCompute, false, c_.module});
    emit_.allocate(id);
    return id;
  }
  void drop(BufferId id) { emit_.free(id); }

  /// ATen/native/ConvolutionMM2d.cpp: 1x1 filters need no columns; the backward has an image's.
  void own_loops() {
    output_();
    if (s_.pass != Pass::kBackwardInput) return emit_.launch(kernel_);
    const BufferId columns =
        take(s_.in_channels * product(s_.kernel) * product(s_.out) * element());
    emit_.launch(kernel_);
    drop(columns);
  }

  void forward() {
    if (s_.channels_last) {
      output_();
      const BufferId weight = take(blocked_weight(input_as_it_is()));
      emit_.launch(kernel_);
      return drop(weight);
    }
    const bool gathers = strided() && all_ones(s_.kernel) && !depthwise();  // the points that count
    const std::int64_t gathered = c_.threads * s_.in_channels * product(s_.out) * element();
    std::optional<BufferId> scratch, input;
    if (gathers) scratch = take(gathered);
    if (!input_as_it_is()) input = take(blocked_input());
    const BufferId weight = take(blocked_weight(input_as_it_is()));
    const BufferId blocked = take(blocked_output());
    emit_.launch(kernel_);
    drop(weight);
    if (input) drop(*input);
    if (scratch) drop(*scratch);
    output_();
    drop(blocked);
  }

  void backward_input() {
    if (s_.channels_last) {
      output_();
      const BufferId weight = take(blocked_weight(false));
      emit_.launch(kernel_);
      return drop(weight);
    }
    const bool by_points = strided() && !depthwise();  // works in nhwc, in buffers of its threads
    const BufferId gradient = take(blocked_output());
    const BufferId weight = take(blocked_weight(false));
    const BufferId blocked = take(by_points ? plain_input() : blocked_input());
    if (by_points) {
      std::int64_t points = 1;
      for (const std::int64_t side : s_.out) points *= padded(side);
      const BufferId scratch = take(c_.threads * s_.out_channels * points * element());
      emit_.launch(kernel_);
      drop(scratch);
    } else {
      emit_.launch(kernel_);
    }
    drop(weight);
    drop(gradient);
    std::optional<BufferId> dense;  // in nhwc as well, and then copied
    if (by_points) dense = take(plain_input());
    output_();
    drop(blocked);
    if (dense) drop(*dense);
  }

  /// A side of the output with the border that the buffers of a strided backward have.
  [[nodiscard]] static std::int64_t padded(std::int64_t side) {
    constexpr std::int64_t kBorder = 2;
    return side > 1 ? side + kBorder : side;
  }

  void backward_weight() {
    const bool as_it_is = input_as_it_is();
    const std::int64_t weight_bytes = blocked_weight(as_it_is);
    std::optional<BufferId> gradient, input;
    if (!s_.channels_last) {
      gradient = take(blocked_output());
      if (!as_it_is) input = take(blocked_input());
    }
    const BufferId weight = take(weight_bytes);
    // Each further thread sums up in a copy of its own, over its images.
    const std::int64_t copies = std::min<std::int64_t>(c_.threads, s_.batch) - 1;
    std::optional<BufferId> sums;
    if (copies > 0 && !depthwise()) sums = take(copies * weight_bytes + kBarriers);
    emit_.launch(kernel_);
    if (sums) drop(*sums);
    if (input) drop(*input);
    if (gradient) drop(*gradient);
    output_();
    drop(weight);
  }

  Emitter& emit_;
  const CpuConvolution& c_;
  const ConvolutionShape& s_;
  const Kernel& kernel_;
  const std::function<void()>& output_;
};

}  // namespace

bool onednn_takes(const ConvolutionShape& s, int threads) {
  const bool one_tap = s.kernel[0] * s.kernel[1] * s.kernel[2] == 1;
  const bool moves = !all_ones(s.stride) || !all_ones(s.dilation);
  const bool worth_it = moves || s.batch >= kBatchOfOnednn || !one_tap || threads > 1;
  const auto last = static_cast<std::size_t>(std::clamp(s.spatial, 1, 3) - 1);
  constexpr std::int64_t kLargeSide = 3;
  const bool large_filter =
      last > 0 && s.kernel[last] > kLargeSide && s.kernel[last - 1] > kLargeSide;
  const std::int64_t elements = s.batch * s.in_channels * product(s.in);
  return worth_it && (s.groups > 1 || large_filter || s.batch > 1 || elements > kSmallPicture);
}

void emit_cpu_convolution(Emitter& emit, const CpuConvolution& convolution, const Kernel& kernel,
                          const std::function<void()>& output) {
  CallEmitter(emit, convolution, kernel, output).run();
}

}  // namespace stoker
