#include <algorithm>

#include "work/describer.h"

namespace stoker {
namespace {

std::int64_t side(const std::vector<std::int32_t>& list, std::size_t i, std::int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : i < list.size() ? list[i] : otherwise;
}

/// Geometry from the input, weight and output tensors of a convolution (forward direction).
ConvolutionShape convolution_shape(const Describer& d, const TensorRef& input,
                                   const TensorRef& weight, const TensorRef& output) {
  ConvolutionShape c;
  const auto in = d.shape(input);
  const auto w = d.shape(weight);
  const auto out = d.shape(output);
  const Attributes& a = d.attributes();
  c.groups = a.groups;
  c.transposed = a.transposed || d.rule() == WorkRule::kTransposedConvolution;
  c.channels_last = d.channels_last(input) || d.channels_last(weight);
  c.spatial = static_cast<int>(std::min<std::size_t>(3, w.size() > 2 ? w.size() - 2 : 1));
  if (in.size() < 2 || out.size() < 2 || w.size() < 2) return c;
  c.batch = in[0];
  c.in_channels = in[1];
  c.out_channels = out[1];
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.spatial); ++i) {
    if (in.size() > i + 2) c.in[i] = in[i + 2];
    if (out.size() > i + 2) c.out[i] = out[i + 2];
    if (w.size() > i + 2) c.kernel[i] = w[i + 2];
    c.stride[i] = side(a.stride, i, 1);
    c.dilation[i] = side(a.dilation, i, 1);
  }
  return c;
}

/// Every tap at every position counts, padding too, as in PyTorch's counter.
Flops convolution_flops(const ConvolutionShape& c) {
  double taps = 1;
  double positions = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    taps *= static_cast<double>(c.kernel[i]);
    positions *= static_cast<double>(c.transposed ? c.in[i] : c.out[i]);
  }
  return Flops(2.0 * static_cast<double>(c.batch) * positions * taps *
               static_cast<double>(c.in_channels) * static_cast<double>(c.out_channels) /
               static_cast<double>(std::max<std::int64_t>(1, c.groups)));
}

KernelClass convolution_class(const ConvolutionShape& c) {
  return c.groups > 1 && c.groups == c.in_channels ? KernelClass::kDepthwiseConvolution
                                                   : KernelClass::kConvolution;
}

Work convolution_work(const Describer& d, ConvolutionShape c, Pass pass, Bytes read,
                      Bytes written) {
  c.pass = pass;
  Work work;
  work.kernel_class = convolution_class(c);
  work.flops = convolution_flops(c);
  work.read = read;
  work.written = written;
  work.dtype = d.dtype(d.inputs()[0]);
  work.elements = 0;
  for (const TensorRef& t : d.inputs()) work.elements = std::max(work.elements, d.elements(t));
  work.shape = c;
  return work;
}

/// PyTorch's own depthwise kernels add the bias themselves; cuDNN's are followed by a kernel that
/// adds it (aten/src/ATen/native/Convolution.cpp, _convolution). cuDNN takes depthwise convolutions
/// in channels-last.
bool adds_bias_itself(const ConvolutionShape& c) {
  return convolution_class(c) == KernelClass::kDepthwiseConvolution && !c.channels_last &&
         !c.transposed && c.spatial == 2;
}

}  // namespace

void append_convolution(const Describer& d, std::vector<Work>& into) {
  const auto& in = d.inputs();
  if (in.size() < 2 || d.outputs().empty()) {
    into.push_back(d.base(KernelClass::kUncosted));
    return;
  }
  const TensorRef& out = d.outputs()[0];
  const ConvolutionShape c = convolution_shape(d, in[0], in[1], out);
  const Bytes output = d.bytes(out);
  const bool bias = in.size() > 2;
  Bytes read = d.bytes(in[0]) + d.bytes(in[1]);
  if (bias && adds_bias_itself(c)) read += d.bytes(in[2]);
  into.push_back(convolution_work(d, c, Pass::kForward, read, output));
  if (!bias || adds_bias_itself(c)) return;
  Work add = d.base(KernelClass::kElementwise);
  add.read = output + d.bytes(in[2]);
  add.written = output;
  add.elements = d.elements(out);
  add.flops = Flops(static_cast<double>(add.elements));
  into.push_back(add);
}

void append_convolution_backward(const Describer& d, std::vector<Work>& into) {
  const auto& in = d.inputs();
  if (in.size() < 3) {
    into.push_back(d.base(KernelClass::kUncosted));
    return;
  }
  const TensorRef& gradient = in[0];
  const TensorRef& input = in[1];
  const TensorRef& weight = in[2];
  const ConvolutionShape c = convolution_shape(d, input, weight, gradient);
  const auto& mask = d.attributes().gradients;
  const auto wanted = [&](std::size_t i) {
    return mask.size() > i ? static_cast<bool>(mask[i]) : i < 2;
  };
  if (wanted(0)) {
    into.push_back(convolution_work(d, c, Pass::kBackwardInput, d.bytes(gradient) + d.bytes(weight),
                                    d.bytes(input)));
  }
  if (wanted(1)) {
    into.push_back(convolution_work(d, c, Pass::kBackwardWeight, d.bytes(gradient) + d.bytes(input),
                                    d.bytes(weight)));
  }
  if (wanted(2)) {
    Work bias = d.base(KernelClass::kReduction);
    bias.read = d.bytes(gradient);
    bias.written = Bytes(c.out_channels * size_of(d.dtype(gradient)));
    bias.elements = d.elements(gradient);
    bias.flops = Flops(static_cast<double>(bias.elements));
    into.push_back(bias);
  }
}

}  // namespace stoker
