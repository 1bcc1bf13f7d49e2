#pragma once

#include <string_view>
#include <vector>

#include "accuracy/common/bench.h"
#include "base/result.h"
#include "program/job.h"

/// Rows that the scripts of this project measured (data/measured/*/*.csv): what was run.
namespace stoker::accuracy {

/// Whether "flags" of the row has that flag of `stoker predict`.
[[nodiscard]] bool has_flag(const CsvRow& row, std::string_view flag);

/// The capture that a row needs.
[[nodiscard]] CaptureRequest measured_request(const CsvRow& row);
std::vector<CaptureRequest> wanted_measured(const Bench& bench, const Table& table);

/// The job by the row's columns and its "flags".
[[nodiscard]] Result<Job> measured_job(const CsvRow& row);

}  // namespace stoker::accuracy
