#pragma once

#include <string>

#include "forecast/time/scaling.h"

namespace stoker {

struct ReportContext;

/// The answer first: up to how many GPUs it pays, and what stops it; then a line for each count.
[[nodiscard]] std::string scaling_text(const Scaling& scaling, const ReportContext& context);
/// JSON of numbers of GPUs (docs/reference/json.md, "scaling").
[[nodiscard]] std::string scaling_json(const Scaling& scaling, const ReportContext& context);

}  // namespace stoker
