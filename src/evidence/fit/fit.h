#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evidence/fit/fit_rows.h"
#include "timing/step/coefficient_file.h"

namespace stoker {

/// Relative errors in percent of a set of rows, before the fit and after: each row by a fit that
/// saw neither its shape nor its model.
struct FitError {
  std::string group;  ///< "" for all rows of the GPU
  std::size_t rows = 0;
  double mean_before = 0, median_before = 0, mean_after = 0, median_after = 0;
  bool kept =
      true;  ///< false: the rows did not help those that were left out, so they are not used
};

struct GpuFit {
  std::string gpu;
  CoefficientPatch patch;  ///< empty when nothing improved
  FitError all;            ///< of the groups that are kept
  std::vector<FitError> groups;
};

struct FitResult {
  std::vector<GpuFit> gpus;  ///< by name

  [[nodiscard]] bool improved() const;
};

/// Scales of cost classes for each GPU of the table, drawn towards `shipped`. Groups of rows (one
/// kind of operator, layers, steps) whose error in cross-validation does not fall are left out, and
/// the classes that they alone tell of keep what ships. Refuses a GPU with fewer than two shapes or
/// models.
[[nodiscard]] Result<FitResult> fit_coefficients(const FitTable& table,
                                                 const CoefficientFile& shipped);

/// The file that CoefficientFile reads: for each GPU that improved its patch, with the errors.
/// `source` names the rows. The same rows give the same bytes.
[[nodiscard]] std::string fit_json(const FitResult& result, const std::string& source);

/// The errors as a table for people.
[[nodiscard]] std::string fit_text(const FitResult& result);

}  // namespace stoker
