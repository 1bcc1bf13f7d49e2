#pragma once

#include <vector>

#include "diagnosis/findings/job_diagnosis.h"
#include "json/value.h"

namespace stoker::page {

/// Findings of a diagnosis as a table of a page; null where there are none.
[[nodiscard]] json::Value finding_table(const std::vector<JobFinding>& findings);
/// Findings of traces, under their names in words; null where there are none.
[[nodiscard]] json::Value trace_finding_table(const std::vector<JobFinding>& findings);

}  // namespace stoker::page
