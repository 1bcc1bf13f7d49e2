#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "timing/common/coefficients.h"
#include "timing/step/coefficient_file.h"

namespace stoker {

/// What ships: a base for all GPUs, and what architectures, chips and single GPUs change about it.
class CoefficientFile {
 public:
  /// `text` is JSON (docs/models/time.md, "The coefficient file"); `where` names it in errors.
  [[nodiscard]] static Result<CoefficientFile> parse(std::string_view text,
                                                     const std::string& where);
  /// A file, or a folder of files, each fitted by one module of scripts/fit_timing. They are laid
  /// over each other in the order of their names: the later one wins where two name the same value
  /// of the same base, architecture, chip or GPU.
  [[nodiscard]] static Result<CoefficientFile> load(const std::filesystem::path& path);
  /// Lays another file over this one, as a later one of a folder.
  [[nodiscard]] Status lay_over(const std::filesystem::path& path);
  /// data/coefficients/timing/ of the data folder.
  [[nodiscard]] static Result<CoefficientFile> load_shipped();

  /// base <- architecture <- chip <- GPU <- calibration: `calibration`, else what a machine file
  /// measured on this very GPU, if anything. A CPU has no layers, only what was measured on it.
  /// Errors name the row of such a file that cannot be.
  [[nodiscard]] Result<Coefficients> for_device(
      const Device& device, const CoefficientPatch* calibration = nullptr) const;

 private:
  [[nodiscard]] Status add(std::string_view text, const std::string& where);
  [[nodiscard]] Result<Coefficients> for_gpu(const Gpu& gpu,
                                             const CoefficientPatch* calibration) const;
  [[nodiscard]] Result<Coefficients> for_cpu(const Cpu& cpu) const;

  Coefficients base_;
  std::vector<std::pair<std::string, CoefficientPatch>> architectures_;  ///< by name, "volta"
  std::vector<std::pair<std::string, CoefficientPatch>>
      chips_;                                                   ///< "GV100": same chip, other board
  std::vector<std::pair<std::string, CoefficientPatch>> gpus_;  ///< by catalogue key
  std::string residual_file_;                                   ///< beside the file that names it
};

}  // namespace stoker
