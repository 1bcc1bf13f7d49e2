#pragma once

#include <string>

#include "plan/input_plan.h"
#include "report/model/report.h"

namespace stoker {

/// The plan of the input alone: the settings, why, the knobs in order of value, the findings.
[[nodiscard]] std::string input_plan_text(const InputPlan& plan, const ReportContext& context);
/// JSON by docs/reference/json.md.
[[nodiscard]] std::string input_plan_json(const InputPlan& plan, const ReportContext& context);

/// What stands below the plan of a model: findings that are warnings, and the thesis's rule.
[[nodiscard]] std::string input_remarks_text(const InputPlan& plan, const ReportContext& context);

}  // namespace stoker
