#pragma once

#include <string>

#include "base/result.h"
#include "diagnosis/timeline/job_timeline.h"
#include "observe/record/recording.h"

namespace stoker {

struct RecordedTimeline {
  JobTimeline timeline;
  RecordingSummary summary;
};

/// What a recording says of its run.
[[nodiscard]] Result<RecordedTimeline> read_timeline(const std::string& file);

}  // namespace stoker
