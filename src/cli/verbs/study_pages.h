#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "report/study/study_page.h"
#include "study/store/store.h"

namespace stoker::cli {

/// When settings reach values of metrics; `targets` are those that the user named,
/// "accuracy=0.75".
[[nodiscard]] Result<std::vector<study::Convergence>> convergences_of(
    const study::Store& store, const study::StudyView& view,
    const std::vector<std::string>& targets);

/// What the page of a study shows.
[[nodiscard]] Result<StudyPicture> study_picture(const study::Store& store,
                                                 const study::StudyView& view,
                                                 const std::vector<std::string>& targets = {});

}  // namespace stoker::cli
