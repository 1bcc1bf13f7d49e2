#include "lower/loop/known_cliffs.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kVideoRank = 5;  // samples, channels, depth, height, width
/// cuDNN's index of an element is of 32 bits in these kernels.
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

bool is_half(DType type) { return type == DType::kF16 || type == DType::kBf16; }

struct Convolutions {
  int count = 0;        ///< three-dimensional ones in half precision
  int beyond = 0;       ///< whose input or output has more than kMostElements
  Bytes columns;        ///< of the largest, for one sample, in which its kernel is unrolled
  std::int64_t volume;  ///< of the kernel of that one
};

Convolutions three_dimensional(const Step& step, const Sizes& sizes) {
  Convolutions found{};
  for (const Operator& op : step.operators) {
    const auto& name = step.name_of(op);
    if (name.backward() || op.inputs.size() < 2 || op.outputs.empty()) continue;
    if (name.family().kernel_class != KernelClass::kConvolution) continue;
    const auto in = sizes.shape(op.inputs[0].type);
    const auto weight = sizes.shape(op.inputs[1].type);
    const auto out = sizes.shape(op.outputs[0].type);
    const DType type = step.types[index(op.inputs[0].type)].dtype;
    if (in.size() != kVideoRank || weight.size() != kVideoRank || out.size() != kVideoRank ||
        !is_half(type))
      continue;
    ++found.count;
    const std::int64_t most =
        std::max(sizes.elements(op.inputs[0].type), sizes.elements(op.outputs[0].type));
    if (most > kMostElements) ++found.beyond;
    const std::int64_t volume = weight[2] * weight[3] * weight[4];
    const Bytes columns(in[1] * volume * out[2] * out[3] * out[4] * size_of(type));
    if (columns <= found.columns) continue;
    found.columns = columns;
    found.volume = volume;
  }
  return found;
}

}  // namespace

void note_known_cliffs(const Step& step, const Sizes& sizes, const DeviceBackend& device,
                       Diagnostics& d) {
  if (!device.is_apart()) return;
  const Convolutions found = three_dimensional(step, sizes);
  if (found.count == 0) return;
  const std::string columns = "columns of " + human_bytes(found.columns) + " a sample (" +
                              std::to_string(found.volume) + " x its input at stride 1)";
  if (found.beyond > 0) {
    d.add("convolution_beyond_cudnn", Severity::kWarning,
          "a 3-D convolution in half precision with more than 2^31 elements is reported to fall "
          "off cuDNN "
          "and to make " +
              columns + ", which this forecast does not count; take a smaller batch or clip",
          found.beyond);
  }
  if (step.provenance.torch.rfind("2.9.", 0) == 0) {
    d.add("convolution_without_cudnn", Severity::kWarning,
          "captured with PyTorch " + step.provenance.torch +
              ", which with a cuDNN older than 9.15 runs 3-D convolutions in half precision "
              "without it: " +
              columns +
              " and several times the time, which this forecast does "
              "not count; install nvidia-cudnn 9.15 or PyTorch 2.10 (pytorch#166643)",
          found.count);
  }
}

}  // namespace stoker
