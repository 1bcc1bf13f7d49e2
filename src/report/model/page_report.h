#pragma once

#include <string>

#include "forecast/time/roofline.h"
#include "input/loader/loader_timeline.h"
#include "plan/plan_picture.h"
#include "report/model/input_validation_report.h"
#include "report/model/report.h"
#include "report/model/training_report.h"

/// Pages of --html: one self-contained file each (report/html/page.h).
namespace stoker {

[[nodiscard]] std::string plan_page(const Plan& plan, const PlanPicture& picture,
                                    const ReportContext& context);

/// One kind of GPU beside others.
struct ComparedGpu {
  const Forecast* forecast = nullptr;
  const PlanPicture* picture = nullptr;  ///< of a plan; null: it was asked for as it stands
};
/// Several GPUs, best first by the objective; `text` is the same answer for who has no scripts.
[[nodiscard]] std::string comparison_page(const std::vector<ComparedGpu>& gpus, Objective objective,
                                          const ReportContext& context, const std::string& text);

/// What a page shows of one forecast besides the answer.
struct PredictPicture {
  Roofline roofline;
  LoaderTimeline loader;
};
[[nodiscard]] std::string predict_page(const Prediction& prediction, const PredictPicture& picture,
                                       const ReportContext& context);

[[nodiscard]] std::string training_validation_page(const TrainingValidation& validation,
                                                   const TrainingSaid& said);
[[nodiscard]] std::string input_validation_page(const InputValidation& validation,
                                                const LoaderRuns& runs,
                                                const std::string& tool_version);

}  // namespace stoker
