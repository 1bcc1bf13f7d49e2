#pragma once

#include <optional>
#include <string>

#include "diagnosis/trace/trace_diagnosis.h"
#include "json/value.h"
#include "report/json/answer.h"
#include "report/model/report.h"

/// Internal to src/report: objects of docs/reference/json.md.
namespace stoker {

using Json = json::Value;

/// Indented, with a line end. Bytes that are no UTF-8 (names of files) are replaced, never thrown
/// on. What every report begins with: schema, versions, model, host, what the figures rest on.
[[nodiscard]] Json envelope(const ReportContext& context);
[[nodiscard]] Json forecast_object(const Forecast& forecast,
                                   const std::optional<BatchLimits>& limits);
[[nodiscard]] Json plan_object(const Plan& plan);
[[nodiscard]] Json input_plan_object(const InputPlan& plan);
[[nodiscard]] Json figure_object(const Figure& figure);
[[nodiscard]] Json finding_object(const JobFinding& finding);
/// What every answer of explain begins with.
[[nodiscard]] Json explain_envelope(const char* kind, const std::string& file,
                                    const std::string& tool_version);
[[nodiscard]] Json trace_object(const TraceDiagnosis& diagnosis);
[[nodiscard]] Json memory_object(const Forecast& forecast,
                                 const std::optional<BatchLimits>& limits);
[[nodiscard]] Json time_object(const Forecast& forecast);
[[nodiscard]] Json run_object(const RunTime& run);
[[nodiscard]] Json remedies_object(const Remedies& remedies);
[[nodiscard]] Json two_point_object(const TwoPointAnswer& answer);
[[nodiscard]] Json explanation_object(const Prediction& prediction, const Step& step);

}  // namespace stoker
