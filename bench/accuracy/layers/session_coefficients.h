#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker::accuracy {

/// Updates of one tensor that TensorFlow 1 has kernels for. kNone: forward only.
enum class LayerOptimizer : std::uint8_t {
  kNone,
  kSgd,
  kMomentum,
  kAdagrad,
  kRmsprop,
  kAdam,
  kAdadelta
};
inline constexpr std::size_t kLayerOptimizers = 7;
[[nodiscard]] std::string_view name_of(LayerOptimizer optimizer);

/// The families of kernels of a one-layer network, each with a weight of its own. `...Work` are not
/// kernels but the same kernels' instructions: elements over the FP32 rate at kWorkPerElement each.
enum class LayerPart : std::uint8_t {
  kConvolution,
  kConvolutionInput,
  kConvolutionWeight,
  kProduct,
  kProductInput,
  kProductWeight,
  kLayout,          ///< NHWC to NCHW and back, forward
  kLayoutBackward,  ///< the same for gradients
  kPadding,         ///< input copied into one with odd padding
  kActivation,
  kActivationGradient,
  kBias,
  kBiasGradient,
  kFilter,    ///< filter to the library's order
  kInput,     ///< further traffic in units of one pass over the input
  kOutput,    ///< and over the output
  kLoss,      ///< mean squared error and its gradient, in passes over the output
  kGradient,  ///< further traffic of the backward pass, over the input
  kUpdateSgd,
  kUpdateMomentum,
  kUpdateAdagrad,
  kUpdateRmsprop,
  kUpdateAdam,
  kUpdateAdadelta,
  kInputWork,
  kOutputWork,
  kPaddingWork,
  kLossWork
};
inline constexpr std::size_t kLayerParts = 28;
[[nodiscard]] std::string_view name_of(LayerPart part);

/// One call of a framework that runs a whole small graph at once (TensorFlow's session.run), on one
/// GPU and its host. Built-in values are priors; fitted/layers.json replaces them.
struct SessionCoefficients {
  /// Time of a part over what the cost rules say at data-sheet rates.
  std::array<double, kLayerParts> part;
  /// Fixed time of a call by what it runs, microseconds: the host's work and the wait for the
  /// result.
  std::array<double, kLayerOptimizers> convolution_us, dense_us;
  /// 90 % relative half-widths beyond what trees tell of the network, which are nothing on a GPU
  /// and host with rows: of device time, and of the fixed time.
  double spread = 0.5;
  double convolution_floor_spread = 0.6, dense_floor_spread = 0.6;
  SessionCoefficients();
};

}  // namespace stoker::accuracy
