#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "report/model/report.h"

namespace stoker {

/// What one combination of settings gives.
struct SettingsAnswer {
  std::string seq_len, precision;    ///< as typed; "": the same for all
  std::optional<Forecast> forecast;  ///< nullopt: refused
  BatchLimits limits;
  std::string batch, refused;  ///< the batch as typed, and why there is no forecast
};

/// Combinations of settings on one GPU, in the order in which they were typed.
[[nodiscard]] std::string settings_table_text(const std::vector<SettingsAnswer>& answers,
                                              const ReportContext& context);
[[nodiscard]] std::string settings_table_json(const std::vector<SettingsAnswer>& answers,
                                              const ReportContext& context);

}  // namespace stoker
