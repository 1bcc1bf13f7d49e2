#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "device/machine.h"
#include "program/program.h"
#include "timing/gpu/kernel_cost.h"

namespace stoker {

/// Kernels, and networks of one layer, whose times trees have learned, FP32 only: one set of features
/// and of forests each.
enum class ResidualFamily : std::uint8_t {
  kGemm,                ///< matrix products, batched or not
  kElementwise,         ///< one pass over tensors
  kRows,                ///< softmax and layer norm, forward
  kConvolution,         ///< 3x3, stride 1, one group, forward
  kConvolutionNetwork,  ///< a whole network of one layer (layer_network.h)
  kDenseNetwork
};
inline constexpr std::size_t kResidualFamilies = 6;
[[nodiscard]] std::string_view name_of(ResidualFamily family);

inline constexpr std::size_t kMostFeatures = 64;

/// One kernel on one GPU, as trees see it.
struct ResidualInput {
  ResidualFamily family = ResidualFamily::kGemm;
  /// Seconds beyond the floor by the plain rules below, with no fitted number in them. What trees
  /// learn is the logarithm of measured over this.
  double plain = 0;
  /// Of the shape alone: not of the GPU, of the operator's name or of how operands are stored. Decides
  /// which cross-fitted forest did not see it.
  std::uint64_t shape = 0;
  std::array<float, kMostFeatures> features{};
};

/// Names of a family's features in order: its own first, then those of the GPU.
[[nodiscard]] std::span<const std::string_view> feature_names(ResidualFamily family);
/// How many of them come before those of the GPU.
[[nodiscard]] std::size_t shape_features(ResidualFamily family);

/// Makes the features of kernels on one GPU. Training reads them from the tool timing_rows, so
/// that a forecast sees exactly what training saw. They rest on data sheets and on nothing fitted.
class ResidualFeatures {
 public:
  explicit ResidualFeatures(const Gpu& gpu);

  /// Nothing for kernels of no family.
  [[nodiscard]] std::optional<ResidualInput> of(const Kernel& kernel) const;

 private:
  Device device_;
  std::array<float, 8> gpu_{};
};

/// Of the features of a few fixed kernels on a fixed GPU, rounded: trees made for other features
/// are told by it.
[[nodiscard]] std::uint64_t feature_fingerprint();

}  // namespace stoker
