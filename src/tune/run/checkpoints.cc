#include "tune/run/checkpoints.h"

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/disk_room.h"

namespace stoker::tune {
namespace fs = std::filesystem;
namespace {

/// Room on a disk that does not tell it; half of what a number holds, so that sums fit too.
constexpr std::int64_t kUnknownRoom = std::numeric_limits<std::int64_t>::max() / 2;

std::int64_t free_bytes(const fs::path& folder) {
  const auto room = room_on_disk(folder);
  return room ? std::min(room->count(), kUnknownRoom) : kUnknownRoom;
}

}  // namespace

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
                                               const CheckpointLimits& limits,
                                               std::int64_t disk_free) {
  std::vector<std::size_t> removed, kept;
  std::int64_t left = 0, largest = 0, count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    largest = std::max(largest, bytes[i]);
    if (all[i].in_use || all[i].may_go_on) {
      left += bytes[i];
      count += bytes[i] > 0 ? 1 : 0;
      if (!all[i].in_use) kept.push_back(i);
    } else {
      removed.push_back(i);
      disk_free += bytes[i];
    }
  }
  std::ranges::stable_sort(kept, {}, [&](std::size_t i) { return all[i].score; });
  for (const std::size_t i : kept) {
    if (bytes[i] == 0) continue;
    const bool too_much = limits.bytes > 0 && left > limits.bytes,
               too_many = limits.count > 0 && count > limits.count,
               too_little = disk_free < 2 * largest;
    if (!too_much && !too_many && !too_little) break;
    removed.push_back(i);
    --count;
    left -= bytes[i];
    disk_free += bytes[i];
  }
  return removed;
}

bool has_room_for_another(const fs::path& folder) {
  constexpr std::int64_t kLeast = 1 << 20;  // bytes: store and reports need room too
  std::int64_t largest = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    largest = std::max(largest, bytes_below(at->path()));
  return free_bytes(folder) >= std::max(kLeast, largest);
}

bool free_checkpoints(const std::vector<Checkpoint>& all, const CheckpointLimits& limits) {
  if (all.empty()) return false;
  std::vector<std::int64_t> bytes;
  bytes.reserve(all.size());
  for (const Checkpoint& one : all) bytes.push_back(bytes_below(one.folder));
  std::error_code error;
  const std::int64_t disk_free = free_bytes(all.front().folder.parent_path());
  bool any = false;
  for (const std::size_t i : checkpoints_to_remove(all, bytes, limits, disk_free))
    any = (bytes[i] > 0 && fs::remove_all(all[i].folder, error) > 0) || any;
  return any;
}

}  // namespace stoker::tune
