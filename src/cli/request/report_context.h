#pragma once

#include "report/model/report.h"
#include "scenario/resolve/facts.h"
#include "scenario/resolve/resolve.h"

namespace stoker::cli {

/// The facts as a report shows them on this terminal, settings spelled as flags.
[[nodiscard]] ReportContext context_of(const Facts& facts);

/// The same with the lines that describe a resolved scenario's `job`.
[[nodiscard]] ReportContext context_of(const Resolved& resolved, const Job& job);

}  // namespace stoker::cli
