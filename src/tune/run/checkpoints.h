#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace stoker::tune {

/// The checkpoints of one configuration.
struct Checkpoint {
  std::filesystem::path folder;
  double score = 0;
  bool may_go_on = false;  ///< the search may go on from it
  bool in_use = false;     ///< by a trial that runs: never removed
};

/// Bytes of the files below a folder; 0 where there is none.
[[nodiscard]] std::int64_t bytes_below(const std::filesystem::path& folder);

/// Which of them go, by what they take: all that nothing goes on from, then the worst until the
/// rest takes no more than `most` (0: no limit) and leaves the disk as much free as the largest of
/// them takes twice.
[[nodiscard]] std::vector<std::size_t> checkpoints_to_remove(const std::vector<Checkpoint>& all,
                                                             const std::vector<std::int64_t>& bytes,
                                                             std::int64_t most,
                                                             std::int64_t disk_free);

/// Removes those.
void free_checkpoints(const std::vector<Checkpoint>& all, std::int64_t most);

}  // namespace stoker::tune
