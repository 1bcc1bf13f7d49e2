#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.h"
#include "forecast/memory/remedies.h"
#include "input/probe/probe.h"
#include "plan/comparison.h"
#include "plan/plan.h"
#include "report/model/two_point_report.h"
#include "scenario/resolve/facts.h"

namespace stoker {

/// The facts that a figure must be judged in, their settings spelled as the user knows them, and
/// how they are shown; the same for text and JSON. Filled once by the verb; the formatters only lay
/// it out.
struct ReportContext : Facts {
  std::string tool_version;
  std::string model_line;  ///< "resnet50 | train, SGD momentum, 224 px | V100-SXM2-16GB | DDP,
                           ///< eager, amp-fp16"
  /// Settings of the job that differ from the plainest loop: "accumulates 4 batches",
  /// "channels-last".
  std::vector<std::string> settings;
  std::string currency = "$";
  bool unicode = false;  ///< the terminal shows UTF-8
};

/// What `--explain` adds about memory, and what a verdict of "does not fit" advises.
struct MemoryAdvice {
  Remedies remedies;
  /// The smallest device on which it runs, by giving the cache back; absent: not looked for.
  std::optional<Bytes> runs_from;
};

/// One forecast with what stands beside it.
struct Prediction {
  Forecast forecast;
  std::optional<BatchLimits> limits;
  std::optional<MemoryAdvice> advice;
  std::optional<TwoPointAnswer> two_point;
};

[[nodiscard]] std::string plan_text(const Plan& plan, const ReportContext& context);
[[nodiscard]] std::string forecast_text(const Prediction& prediction, const ReportContext& context);
/// Memory at its peak by part and over an iteration, memory and time by module and operator class,
/// and what to change.
[[nodiscard]] std::string explain_text(const Prediction& prediction, const ReportContext& context);
/// Several GPUs side by side in exactly these settings, best first by the objective.
[[nodiscard]] std::string contenders_text(const std::vector<Contender>& contenders,
                                          Objective objective, const ReportContext& context);
/// Several GPUs side by side, each in the settings that suit it best.
[[nodiscard]] std::string comparison_text(const std::vector<std::pair<std::string, Plan>>& plans,
                                          Objective objective, const ReportContext& context);
/// `memories`: sizes of DRAM to set the data beside, besides this host's own.
[[nodiscard]] std::string probe_text(const Probe& probe, const LoaderProfile& profile,
                                     const std::vector<Bytes>& memories = {});

/// JSON by docs/reference/json.md.
[[nodiscard]] std::string plan_json(const Plan& plan, const ReportContext& context);
[[nodiscard]] std::string forecast_json(const Prediction& prediction, const ReportContext& context,
                                        bool explain);
[[nodiscard]] std::string two_point_json(const TwoPointAnswer& answer,
                                         const ReportContext& context);
[[nodiscard]] std::string contenders_json(const std::vector<Contender>& contenders,
                                          Objective objective, const ReportContext& context);
[[nodiscard]] std::string comparison_json(const std::vector<std::pair<std::string, Plan>>& plans,
                                          Objective objective, const ReportContext& context);

}  // namespace stoker
