#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "diagnosis/timeline/job_timeline.h"
#include "report/model/watch_report.h"

namespace stoker::cli {

/// Refuses what `--against` cannot mean, before a watch of hours begins: a model or a script as
/// `stoker predict` takes it, with flags of `predict` behind it where they differ from what the run
/// itself shows.
[[nodiscard]] Status check_against(const std::string& words);

/// The forecast of that model for the machine, the batch and the loader of a run, beside what the
/// run did.
[[nodiscard]] Result<AgainstForecast> set_against(const std::string& words,
                                                  const JobTimeline& timeline);

}  // namespace stoker::cli
