#include "snapshot/snapshot.h"

#include <algorithm>
#include <set>

#include "base/packed_file.h"

namespace stoker {
namespace {

/// A snapshot of more is not read: PyTorch writes several KB an event with C++ stacks, and a run
/// that records without limit fills the disk first.
constexpr Bytes kMaxFile{8LL << 30};

}  // namespace

std::string_view name_of(TraceAction action) {
  constexpr std::string_view kNames[] = {
      "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
      "segment_map", "segment_unmap",  "snapshot",       "oom",           "other"};
  return kNames[static_cast<std::size_t>(action)];
}

std::vector<std::size_t> Snapshot::devices() const {
  std::set<std::size_t> found;
  for (const SnapshotSegment& segment : segments)
    found.insert(static_cast<std::size_t>(segment.device));
  for (std::size_t d = 0; d < traces.size(); ++d) {
    if (has_trace(d)) found.insert(d);
  }
  return {found.begin(), found.end()};
}

Result<Snapshot> read_snapshot(const std::filesystem::path& path) {
  Unpacked file = TRY(read_unpacked(path, kMaxFile));
  return parse_snapshot(std::move(file.content), path.string());
}

}  // namespace stoker
