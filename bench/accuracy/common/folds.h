#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "timing/step/coefficient_file.h"

namespace stoker::accuracy {

/// What the coefficients that score a row have not seen.
enum class Unseen : std::uint8_t {
  kNothing,  ///< what ships: fitted on these rows too, where the tables are the ones it was fitted
             ///< on
  kShape,    ///< no row with the operator's shape (or, for whole steps, with the model)
  kGpu       ///< no row of the chip, on whatever board
};

/// Coefficient folders that `scripts/fit-timing --folds DIR` made without some of the rows:
///   DIR/shapes        cross-fitted: each shape (model) is served by a fit that did not see it
///   DIR/models-0, -1  no whole step of that half of the models was seen
///   DIR/without/GPU   nothing of that GPU (catalogue key) and of other boards of its chip was seen
/// Absent folders mean that nothing was fitted on such rows or that no folds were made; then what
/// ships has to serve, and the report must say so.
class Folds {
 public:
  /// An empty path: no folds.
  [[nodiscard]] static Result<Folds> open(const std::filesystem::path& folder);

  /// Null when there is no such folder.
  [[nodiscard]] const CoefficientFile* shapes() const { return shapes_ ? &*shapes_ : nullptr; }
  /// For steps of `model`: the fit that saw no step of the model's half (half_of).
  [[nodiscard]] const CoefficientFile* without_model(const std::string& model) const;
  [[nodiscard]] const CoefficientFile* without(const std::string& gpu) const;
  /// Where the folds were made; empty: there are none.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] bool empty() const {
    return !shapes_ && !models_[0] && !models_[1] && without_.empty();
  }

 private:
  std::filesystem::path folder_;
  std::optional<CoefficientFile> shapes_;
  std::array<std::optional<CoefficientFile>, 2> models_;  ///< by the half that was left out
  std::map<std::string, CoefficientFile> without_;        ///< by catalogue key
};

}  // namespace stoker::accuracy
