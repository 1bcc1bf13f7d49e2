#pragma once

#include "json/value.h"
#include "study/findings/convergence.h"
#include "study/findings/findings.h"

/// Internal to src/report/study.
namespace stoker {

[[nodiscard]] json::Value setting_object(const study::StudyView& view,
                                         const study::Setting& setting,
                                         const std::vector<std::string>& figures);
[[nodiscard]] json::Value convergence_object(const study::StudyView& view,
                                             const study::Convergence& convergence);
[[nodiscard]] json::Value findings_object(const study::StudyView& view,
                                          const study::Findings& findings);
/// The answer of --json, with findings where there are any.
[[nodiscard]] json::Value study_object(const study::StudyView& view, std::string_view version,
                                       const study::Findings* findings,
                                       const std::vector<study::Convergence>& convergences);

}  // namespace stoker
