#pragma once

#include <string>
#include <vector>

#include "accuracy/common/measure.h"

namespace stoker::accuracy {

/// What the figures must be judged with.
struct ReportContext {
  std::string versions;  ///< of what captured: "stoker 0.1.0, torch 2.14.1, timm 1.0.31"
  std::string date;
  std::int64_t sample = 0;
  std::uint64_t seed = 0;
  std::vector<std::string> skipped;  ///< tables that are not there
};

/// One line a measure, what stood out below it.
[[nodiscard]] std::string as_text(const std::vector<Measure>& measures,
                                  const ReportContext& context);

/// {"measures": [{"name", "rows", "mape", "mdape", "p90", "coverage", "width", "rival": {...},
/// ...}]}; percent.
[[nodiscard]] std::string as_json(const std::vector<Measure>& measures,
                                  const ReportContext& context);

/// The bands that forecasts of memory ship with (pairs in MiB): quantiles of the error by kind of
/// job, and of all rows together for jobs of which too few rows are known. Pairs without a kind add
/// nothing.
[[nodiscard]] std::string memory_bands_as_json(const std::vector<Measure>& measures,
                                               const ReportContext& context);

/// Every pair behind the scores, as a table: measure,row,kind,truth,predicted,low,high.
[[nodiscard]] std::string rows_as_csv(const std::vector<Measure>& measures);

}  // namespace stoker::accuracy
