#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "device/gpu.h"
#include "operators/kernel_class.h"
#include "program/program.h"
#include "timing/gpu/gpu_rates.h"
#include "timing/learned/forest.h"

namespace stoker {

/// One kernel on one GPU, as trees see it; its plain time is that beyond the floor.
struct ResidualInput : ForestInput {
  ResidualFamily family = ResidualFamily::kGemm;
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
  GpuRates device_;
  std::array<float, 8> gpu_{};
};

/// Hash of the features of a few fixed kernels on one GPU, rounded: trees made for other features
/// are told by it.
[[nodiscard]] std::uint64_t feature_fingerprint();

}  // namespace stoker
