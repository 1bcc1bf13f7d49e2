#include "accuracy/layers/layer_network.h"

#include <algorithm>

namespace stoker::accuracy {
namespace {

constexpr std::int64_t kFloat = 4;  ///< bytes

/// Index arithmetic and loads of one element of a generic element-wise kernel, in units of FP32
/// operations; only scales the weights of the `...Work` parts.
constexpr double kWorkPerElement = 100;

/// Writes the kernels of one network.
class LayerWriter {
 public:
  explicit LayerWriter(const LayerNetwork& network)
      : net_(network),
        in_(network.batch * network.in_side * network.in_side * network.in_channels),
        out_(network.batch * network.out_side() * network.out_side() * network.out_channels),
        filter_(network.kernel * network.kernel * network.in_channels * network.out_channels) {}

  std::vector<LayerKernel> write() {
    forward();
    if (net_.trained()) {
      loss();
      backward();
      update();
    }
    return std::move(kernels_);
  }

 private:
  void forward() {
    product(net_.is_product() ? LayerPart::kProduct : LayerPart::kConvolution, Pass::kForward);
    if (!net_.is_product()) {
      passes(LayerPart::kLayout, 2 * (in_ + out_), KernelClass::kCopy);
      passes(LayerPart::kFilter, 2 * filter_, KernelClass::kCopy);
      if (net_.padding() % 2 == 1) {
        passes(LayerPart::kPadding, 2 * in_, KernelClass::kCopy);
        work(LayerPart::kPaddingWork, in_);
      }
    }
    if (net_.bias) passes(LayerPart::kBias, 2 * out_);
    if (net_.activation != LayerActivation::kNone) passes(LayerPart::kActivation, 2 * out_);
    passes(LayerPart::kInput, in_);
    passes(LayerPart::kOutput, out_);
    work(LayerPart::kInputWork, in_);
    work(LayerPart::kOutputWork, out_);
  }

  void loss() {
    passes(LayerPart::kLoss, out_);
    work(LayerPart::kLossWork, out_);
  }

  void backward() {
    if (net_.activation != LayerActivation::kNone) passes(LayerPart::kActivationGradient, 3 * out_);
    if (net_.bias) passes(LayerPart::kBiasGradient, out_, KernelClass::kReduction);
    const bool one = net_.is_product();
    product(one ? LayerPart::kProductInput : LayerPart::kConvolutionInput, Pass::kBackwardInput);
    product(one ? LayerPart::kProductWeight : LayerPart::kConvolutionWeight, Pass::kBackwardWeight);
    if (!one) passes(LayerPart::kLayoutBackward, 2 * (in_ + out_), KernelClass::kCopy);
    passes(LayerPart::kGradient, in_);
  }

  void update() {
    const auto part = static_cast<LayerPart>(static_cast<int>(LayerPart::kUpdateSgd) +
                                             static_cast<int>(net_.optimizer) - 1);
    const std::int64_t bias = net_.bias ? net_.out_channels : 0;
    passes(part, in_ + out_ + filter_ + bias, KernelClass::kOptimizer);
  }

  Kernel& add(LayerPart part, KernelClass kernel_class) {
    LayerKernel entry{part, {}};
    entry.kernel.kernel_class = kernel_class;
    entry.kernel.phase = StepPhase::kForward;
    kernels_.push_back(entry);
    return kernels_.back().kernel;
  }

  /// Traffic of `elements` words, half of it read.
  void passes(LayerPart part, std::int64_t elements,
              KernelClass kernel_class = KernelClass::kElementwise) {
    Kernel& kernel = add(part, kernel_class);
    kernel.read = Bytes(kFloat * (elements - elements / 2));
    kernel.written = Bytes(kFloat * (elements / 2));
    kernel.elements = elements / 2;
  }

  void work(LayerPart part, std::int64_t elements) {
    Kernel& kernel = add(part, KernelClass::kElementwise);
    kernel.flops = Flops(kWorkPerElement * static_cast<double>(elements));
  }

  void product(LayerPart part, Pass pass) {
    Kernel& kernel = add(part, KernelClass::kConvolution);
    if (pass != Pass::kForward) kernel.phase = StepPhase::kBackward;
    const std::int64_t side = net_.out_side();
    kernel.flops =
        Flops(2.0 * static_cast<double>(net_.batch * side * side) * static_cast<double>(filter_));
    const std::int64_t operands[] = {in_, filter_, out_};
    const std::int64_t result = pass == Pass::kForward         ? out_
                                : pass == Pass::kBackwardInput ? in_
                                                               : filter_;
    kernel.read = Bytes(kFloat * (operands[0] + operands[1] + operands[2] - result));
    kernel.written = Bytes(kFloat * result);
    kernel.elements = result;
    if (net_.is_product()) {
      kernel.kernel_class = KernelClass::kGemm;
      kernel.shape = gemm(pass);
    } else {
      kernel.shape = convolution(pass);
    }
  }

  [[nodiscard]] GemmShape gemm(Pass pass) const {
    const std::int64_t rows = net_.batch * net_.out_side() * net_.out_side();
    const std::int64_t in = filter_ / net_.out_channels;
    const std::int64_t out = net_.out_channels;
    switch (pass) {
      case Pass::kForward:
        return {.m = rows, .n = out, .k = in};
      case Pass::kBackwardInput:
        return {.m = rows, .n = in, .k = out, .transpose_b = true};
      case Pass::kBackwardWeight:
        break;
    }
    return {.m = in, .n = out, .k = rows, .transpose_a = true};
  }

  [[nodiscard]] ConvolutionShape convolution(Pass pass) const {
    ConvolutionShape shape;
    shape.batch = net_.batch;
    shape.in_channels = net_.in_channels;
    shape.out_channels = net_.out_channels;
    shape.in = {net_.in_side, net_.in_side, 1};
    shape.out = {net_.out_side(), net_.out_side(), 1};
    shape.kernel = {net_.kernel, net_.kernel, 1};
    shape.stride = {net_.stride, net_.stride, 1};
    shape.pass = pass;
    return shape;
  }

  const LayerNetwork& net_;
  std::int64_t in_, out_, filter_;  ///< elements
  std::vector<LayerKernel> kernels_;
};

}  // namespace

std::int64_t LayerNetwork::out_side() const {
  if (kind == LayerKind::kDense) return 1;
  const std::int64_t step = std::max<std::int64_t>(1, stride);
  if (same_padding) return (in_side + step - 1) / step;
  return std::max<std::int64_t>(1, (in_side - kernel) / step + 1);
}

std::int64_t LayerNetwork::padding() const {
  if (!same_padding || kind == LayerKind::kDense) return 0;
  return std::max<std::int64_t>(0, (out_side() - 1) * stride + kernel - in_side);
}

bool LayerNetwork::is_product() const {
  if (kind == LayerKind::kDense) return true;
  return (kernel == 1 && stride == 1) || (!same_padding && kernel == in_side);
}

std::vector<LayerKernel> layer_kernels(const LayerNetwork& network) {
  return LayerWriter(network).write();
}

}  // namespace stoker::accuracy
