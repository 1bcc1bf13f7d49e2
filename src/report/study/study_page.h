#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/study/study_report.h"

/// Pages of studies: --html of sweep and study.
namespace stoker {

/// Everything that a study says, with what trials reported on their way.
struct StudyPicture {
  study::StudyView view;
  study::Findings findings;
  std::vector<study::Convergence> convergences;
  std::map<std::string, study::Curves> curves;  ///< by metric
  study::ForecastVerdict verdict;
  std::string store;  ///< name of its file
};

[[nodiscard]] std::string study_page(const StudyPicture& picture, std::string_view version);

}  // namespace stoker
