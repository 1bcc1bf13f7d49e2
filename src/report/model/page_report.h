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
