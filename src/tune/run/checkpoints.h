#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stoker::tune {

/// The checkpoints of one configuration.
struct Checkpoint {
  std::filesystem::path folder;
  double score = 0;
  bool may_go_on = false;  ///< the search may go on from it, or it is the best so far
  bool in_use = false;     ///< by a trial that runs: never removed
};

/// What checkpoints may take; 0: no limit.
struct CheckpointLimits {
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< configurations that have some
};

/// Bytes of the files below a folder; 0 where there is none.
[[nodiscard]] std::int64_t bytes_below(const std::filesystem::path& folder);

/// Which of them go, by what they take: all that nothing goes on from, then the worst until the
/// rest keeps to the limits and leaves the disk as much free as the largest of them takes twice.
[[nodiscard]] std::vector<std::size_t> checkpoints_to_remove(const std::vector<Checkpoint>& all,
                                                             const std::vector<std::int64_t>& bytes,
                                                             const CheckpointLimits& limits,
                                                             std::int64_t disk_free);

/// Removes those; false: there were none.
bool free_checkpoints(const std::vector<Checkpoint>& all, const CheckpointLimits& limits);

/// Whether another checkpoint as large as the largest below `folder` finds room on its disk.
[[nodiscard]] bool has_room_for_another(const std::filesystem::path& folder);

}  // namespace stoker::tune
