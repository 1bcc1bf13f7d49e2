#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "accuracy/layers/session_coefficients.h"
#include "program/program.h"

namespace stoker::accuracy {

enum class LayerKind : std::uint8_t { kConvolution, kDense };
enum class LayerActivation : std::uint8_t { kNone, kRelu, kTanh, kSigmoid, kSoftmax };

/// A network of one layer as a benchmark runs it in TensorFlow's graph mode: one call of
/// `session.run`, FP32, channels last, operands that are variables on the GPU. With an optimizer
/// the call is forward, mean squared error, backward and update, and input and target are trained
/// too. Dense: in_channels and out_channels are its sides, the spatial members stay 1.
struct LayerNetwork {
  LayerKind kind = LayerKind::kConvolution;
  std::int64_t batch = 1, in_channels = 1, out_channels = 1;
  std::int64_t in_side = 1, kernel = 1, stride = 1;
  bool same_padding = false;
  bool bias = false;
  LayerActivation activation = LayerActivation::kNone;
  LayerOptimizer optimizer = LayerOptimizer::kNone;

  [[nodiscard]] bool trained() const { return optimizer != LayerOptimizer::kNone; }
  [[nodiscard]] std::int64_t out_side() const;
  /// Rows and columns that `same` padding adds to the input together; odd: one side gets one more,
  /// which cuDNN cannot express, so the framework copies the input into a padded one.
  [[nodiscard]] std::int64_t padding() const;
  /// Kernel 1, stride 1, or a kernel that covers the whole input: run as one matrix product.
  [[nodiscard]] bool is_product() const;
};

/// One device kernel of a one-layer network and which weight of SessionCoefficients it is timed
/// with.
struct LayerKernel {
  LayerPart part = LayerPart::kConvolution;
  Kernel kernel;
};

/// What the call launches, in order. Sizes must be at least 1 and the kernel no larger than the
/// padded input.
[[nodiscard]] std::vector<LayerKernel> layer_kernels(const LayerNetwork& network);

}  // namespace stoker::accuracy
