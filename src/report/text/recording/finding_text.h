#pragma once

#include <cstddef>
#include <string>

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

}  // namespace stoker::layout
