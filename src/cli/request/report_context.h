#pragma once

#include "report/model/report.h"
#include "scenario/resolve/facts.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {

/// The facts as a report shows them on this terminal, settings spelled as flags.
[[nodiscard]] ReportContext context_of(const Facts& facts);

/// The facts of a resolved scenario, with the lines that describe its `job`.
[[nodiscard]] ReportContext context_of(const Resolved& resolved, const Job& job);

}  // namespace stoker::cli
