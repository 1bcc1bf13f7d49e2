#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accuracy/common/statistics.h"
#include "base/result.h"

namespace stoker::accuracy {

/// What somebody else's method says on the same rows; percent.
struct Rival {
  std::string name;
  std::int64_t rows = 0;
  double mape = 0, mdape = 0, p90 = 0;
};

/// Rows that could not be served, and why.
struct Unserved {
  std::string row;
  std::string reason;
};

/// One line of the report.
struct Measure {
  std::string name;  ///< "memory/timm-a100"
  std::string what;  ///< what is compared, under which conditions
  Score score;       ///< with what ships; rows = 0 where `shares` say it all
  std::optional<Rival> rival;
  /// Constants fitted on one half of the model families and scored on the other, both ways, pooled.
  std::optional<Score> cross_fitted;
  /// Shares of rows in percent, by name ("exact", "fits_wrongly"), and other named figures.
  std::vector<std::pair<std::string, double>> shares;
  std::vector<std::string> notes;
  std::vector<Pair> pairs;  ///< rows behind `score`
  std::vector<Unserved> unserved;
};

/// The measures, or one without rows that says why there are none.
[[nodiscard]] inline std::vector<Measure> or_note(Result<std::vector<Measure>> result,
                                                  std::string name) {
  if (result) return std::move(*result);
  Measure failed;
  failed.name = std::move(name);
  failed.notes.push_back(result.error().text());
  return {failed};
}

}  // namespace stoker::accuracy
