#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diagnosis/findings/job_diagnosis.h"

/// Internal to src/report: how findings of a diagnosis are written.
namespace stoker::layout {

/// Columns of a diagnosis, where the terminal has as many.
inline constexpr std::size_t kFindingWidth = 100;

/// `text` in lines of `most` columns, or of the terminal's, those behind the first indented by
/// `indent`.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent,
                                  std::size_t most = kFindingWidth);

/// " 1. too_few_workers (49 % of the time, confidence high)", its evidence and its cure below.
[[nodiscard]] std::string finding_text(const JobFinding& finding, std::size_t number);
/// A finding under a name of its own.
[[nodiscard]] std::string finding_text(const JobFinding& finding, std::size_t number,
                                       const std::string& name);
/// Findings of traces, under their names in words; empty where there are none.
[[nodiscard]] std::string trace_findings_text(const std::vector<JobFinding>& findings);
/// "Note: ...", a line each, behind an empty one; empty where there are none.
[[nodiscard]] std::string notes_text(const std::vector<std::string>& notes);

}  // namespace stoker::layout
