#pragma once

#include <string>

#include "report/model/recording_report.h"
#include "report/model/watch_report.h"
#include "snapshot/memory_course.h"

/// Pages of what real runs recorded: --html of explain and watch.
namespace stoker {

/// What a page shows of a snapshot besides its explanation.
struct SnapshotPicture {
  MemoryCourse course;
  std::vector<SegmentFill> segments;  ///< at the explained moment
};
[[nodiscard]] SnapshotPicture picture_of(const SnapshotExplanation& e, const Snapshot& snapshot);

[[nodiscard]] std::string snapshot_page(const SnapshotExplanation& e, const Snapshot& snapshot,
                                        const SnapshotPicture& picture, const std::string& file,
                                        const std::string& tool_version);
[[nodiscard]] std::string profile_page(const ProfileReport& report);
[[nodiscard]] std::string ranks_page(const RanksReport& report);
[[nodiscard]] std::string watch_page(const WatchReport& report);

}  // namespace stoker
