#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "accuracy/layers/session_coefficients.h"
#include "base/result.h"
#include "device/gpu.h"
#include "timing/learned/forest.h"

namespace stoker::accuracy {

/// What a LayerModel knows of one GPU beyond its data sheet.
struct LayerKnowledge {
  SessionCoefficients session;
  std::shared_ptr<const std::vector<Forest>> forests{};  ///< null: no factor is learned
};

/// Families of trees of one-layer networks, by their numbers in a Forest: of their time, and of how
/// wide its band is.
enum class LayerFamily : std::uint8_t { kConvolution, kDense, kConvolutionWidth, kDenseWidth };
inline constexpr std::size_t kLayerFamilies = 4;

/// What was fitted on tables of one-layer networks (scripts/fit-timing): weights for all GPUs, what
/// architectures and single GPUs change about them, and trees.
class LayerCoefficients {
 public:
  /// Without trees. `text` is JSON; `where` names it in errors.
  [[nodiscard]] static Result<LayerCoefficients> parse(std::string_view text,
                                                       const std::string& where);
  /// A folder with layers.json and, if it names one, its file of trees; or such a file.
  [[nodiscard]] static Result<LayerCoefficients> load(const std::filesystem::path& path);
  /// What was fitted on all rows: fitted/ of this folder.
  [[nodiscard]] static Result<LayerCoefficients> load_fitted();

  /// All <- architecture <- GPU.
  [[nodiscard]] LayerKnowledge for_gpu(const Gpu& gpu) const;
  /// This GPU in another host and under other software than those whose rows were fitted: the
  /// forecast is the same, the band that of a machine without rows.
  [[nodiscard]] LayerKnowledge in_another_host(const Gpu& gpu) const;

 private:
  SessionCoefficients of_all_;
  /// Names of coefficients and what they are instead.
  using Patch = std::vector<std::pair<std::string, double>>;
  std::vector<std::pair<std::string, Patch>> architectures_, gpus_;
  std::string trees_file_;  ///< beside the file that names it; empty: none
  std::shared_ptr<const std::vector<Forest>> forests_;
};

}  // namespace stoker::accuracy
