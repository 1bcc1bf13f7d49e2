#pragma once

#include <string_view>
#include <vector>

#include "accuracy/common/bench.h"

namespace stoker::accuracy {

/// One table and what is measured against it.
struct MeasureKind {
  std::string_view group;  ///< memory, time, input
  std::string_view name;
  /// Below the data folder; "measured/*/x.csv" is x.csv of every folder there, "x/*.json" every
  /// such file, both in the data that ships. JSON is no table: the measure reads the files itself.
  std::string_view table;
  std::vector<CaptureRequest> (*wanted)(const Bench&, const Table&);
  std::vector<Measure> (*run)(Bench&, const Table&);
};

/// All measures, in the order of the report.
[[nodiscard]] const std::vector<MeasureKind>& measure_kinds();

}  // namespace stoker::accuracy
