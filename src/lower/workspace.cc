#include "lower/workspace.h"

namespace stoker {
namespace {

constexpr Bytes kCublasDefault{2 * 4096 * 1024 + 8 * 16 * 1024};
constexpr Bytes kCublasHopper{32 << 20};
/// Below this many input channels cuDNN's direct kernels need no workspace (first layers of image
/// models).
constexpr std::int64_t kFewChannels = 4;

}  // namespace

Bytes cublas_workspace(const Gpu& gpu) {
  return gpu.architecture >= Architecture::kHopper && gpu.vendor == Vendor::kNvidia
             ? kCublasHopper
             : kCublasDefault;
}

std::optional<Bytes> convolution_workspace(const ConvolutionShape& shape, Bytes input, Bytes output,
                                           Bytes weight, CudnnProfile profile) {
  const std::int64_t taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
  const bool depthwise = shape.groups > 1 && shape.groups == shape.in_channels;
  if (profile == CudnnProfile::kDefault) {
    if (shape.groups != 1) return std::nullopt;
  } else if (depthwise || taps == 1 || shape.in_channels <= kFewChannels ||
             shape.pass == Pass::kForward) {
    return std::nullopt;
  }
  return input + output + weight;
}

Bytes rnn_reserve(const RnnShape& shape, DType dtype) {
  const std::int64_t cell_and_output = 2;
  return Bytes(shape.layers * shape.directions * shape.length * shape.batch * shape.hidden *
               (shape.gates + cell_and_output) * size_of(dtype));
}

}  // namespace stoker
