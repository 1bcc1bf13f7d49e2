#pragma once

#include "json/value.h"
#include "study/findings/convergence.h"
#include "study/findings/findings.h"

/// Internal to src/report/study.
namespace stoker {

[[nodiscard]] json::Value convergence_object(const study::StudyView& view,
                                             const study::Convergence& convergence);
[[nodiscard]] json::Value findings_object(const study::StudyView& view,
                                          const study::Findings& findings);

}  // namespace stoker
