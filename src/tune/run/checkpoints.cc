#include "tune/run/checkpoints.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace stoker::tune {
namespace fs = std::filesystem;

std::int64_t bytes_below(const fs::path& folder) {
  std::error_code error;
  std::int64_t bytes = 0;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;  // a trial may be replacing its checkpoint
    if (at->is_regular_file(gone)) bytes += static_cast<std::int64_t>(at->file_size(gone));
  }
  return bytes;
}

std::vector<std::size_t> checkpoints_to_remove(const std::vector<Checkpoint>& all,
                                               const std::vector<std::int64_t>& bytes,
                                               std::int64_t most, std::int64_t disk_free) {
  std::vector<std::size_t> removed, kept;
  std::int64_t left = 0, largest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    largest = std::max(largest, bytes[i]);
    if (all[i].in_use || all[i].may_go_on) {
      left += bytes[i];
      if (!all[i].in_use) kept.push_back(i);
    } else {
      removed.push_back(i);
      disk_free += bytes[i];
    }
  }
  std::ranges::stable_sort(kept, {}, [&](std::size_t i) { return all[i].score; });
  for (const std::size_t i : kept) {
    const bool too_much = most > 0 && left > most, too_little = disk_free < 2 * largest;
    if (!too_much && !too_little) break;
    removed.push_back(i);
    left -= bytes[i];
    disk_free += bytes[i];
  }
  return removed;
}

void free_checkpoints(const std::vector<Checkpoint>& all, std::int64_t most) {
  if (all.empty()) return;
  std::vector<std::int64_t> bytes;
  bytes.reserve(all.size());
  for (const Checkpoint& one : all) bytes.push_back(bytes_below(one.folder));
  std::error_code error;
  const fs::space_info disk = fs::space(all.front().folder.parent_path(), error);
  const auto free = error ? std::numeric_limits<std::int64_t>::max()
                          : static_cast<std::int64_t>(std::min<std::uintmax_t>(
                                disk.available, std::numeric_limits<std::int64_t>::max() / 2));
  for (const std::size_t i : checkpoints_to_remove(all, bytes, most, free)) {
    if (bytes[i] > 0) fs::remove_all(all[i].folder, error);
  }
}

}  // namespace stoker::tune
