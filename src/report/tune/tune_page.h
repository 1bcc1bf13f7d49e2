#pragma once

#include <string>
#include <string_view>

#include "report/model/tune_report.h"
#include "study/findings/convergence.h"
#include "study/findings/selection.h"

/// The page of a search: --html of tune.
namespace stoker {

[[nodiscard]] std::string tune_page(const TuneReport& report, const study::StudyView& view,
                                    const study::Curves& curves, std::string_view version);

}  // namespace stoker
