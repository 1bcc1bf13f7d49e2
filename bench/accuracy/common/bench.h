#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "accuracy/common/capture_store.h"
#include "accuracy/common/folds.h"
#include "accuracy/common/measure.h"
#include "base/csv.h"
#include "device/catalogue/gpu_catalogue.h"
#include "forecast/knowledge.h"

namespace stoker::accuracy {

using Table = std::vector<CsvRow>;

/// What every measure works with.
struct Bench {
  std::filesystem::path data;
  std::int64_t sample = 0;  ///< models of a table; 0: all
  std::uint64_t seed = 1;
  CaptureStore captures;
  Knowledge knowledge;
  GpuCatalogue gpus;
  std::map<std::string, double>
      parameters{};  ///< model -> millions, where any table of the data states them
  Folds folds{};

  /// What coefficients score a row of `gpu` (catalogue key). Falls back to those that ship when
  /// there is no such fold: right for rows and GPUs that no fit has seen.
  [[nodiscard]] const CoefficientFile& timing_for(Unseen unseen, const std::string& gpu) const;
};

/// The cell as a number; NaN when it is empty or no number.
[[nodiscard]] double number(const CsvRow& row, std::string_view column);

/// The rows of a table whose model (or what else names a thing that is captured once) is in the
/// sample.
[[nodiscard]] std::vector<const CsvRow*> sampled(const Bench& bench, const Table& table,
                                                 std::string_view column = "model");

/// Refuses a step whose parameters are not those of the model that was measured: libraries redefine
/// names. `millions` is NaN where the table does not say.
[[nodiscard]] Status check_parameters(const Step& step, double millions);

/// Fits a constant on one half of the groups, applies it to the other, both ways, and gives all
/// pairs back in their order. `fit(pairs)` returns a constant, `apply(pair, constant)` the changed
/// pair.
template <class Fit, class Apply>
std::vector<Pair> cross_fit(const std::vector<Pair>& pairs, Fit&& fit, Apply&& apply) {
  std::vector<Pair> result = pairs;
  for (const int held_out : {0, 1}) {
    std::vector<Pair> others;
    for (const Pair& p : pairs) {
      if (half_of(p.group) != held_out) others.push_back(p);
    }
    if (others.empty()) continue;
    const auto constant = fit(others);
    for (Pair& p : result) {
      if (half_of(p.group) == held_out) p = apply(p, constant);
    }
  }
  return result;
}

}  // namespace stoker::accuracy
