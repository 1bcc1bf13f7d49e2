#include "snapshot/heap_state.h"

#include <algorithm>
#include <iterator>

namespace stoker {
namespace {

/// A large segment may hold up to this much behind a block that nobody else can use; it belongs to
/// the block (kSmallSize of the allocator: a smaller rest is not split off).
constexpr std::int64_t kMostSlack = kSmallSize.count();

}  // namespace

std::int64_t HeapState::with_slack(const HeapSegment& segment, std::int64_t requested,
                                   std::int64_t room) const {
  const std::int64_t size = rounded(requested), rest = room - size;
  if (segment.size == kSmallSegment.count() || segment.expandable || rest <= 0) return size;
  const bool unsplittable = size >= config_->max_split_size.count();
  return rest <= kMostSlack || unsplittable ? room : size;
}

std::int64_t HeapState::rounded(std::int64_t requested) const {
  return requested <= 0 ? 0 : block_size(Bytes{requested}, *config_).count();
}

void HeapState::load_end(const Snapshot& snapshot, std::size_t device) {
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != static_cast<std::int64_t>(device)) continue;
    (void)add_memory(segment.address,
                     {segment.size, segment.stream, segment.pool, segment.expandable});
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == SnapshotBlockState::kInactive) continue;
      (void)add_block(block.address, {block.requested, block.stack, segment.stream, segment.pool,
                                      block.state == SnapshotBlockState::kPendingFree});
    }
  }
}

bool HeapState::apply(const TraceEvent& e) {
  switch (e.action) {
    case TraceAction::kAlloc:
      return add_block(e.address, {e.size, e.stack, e.stream, e.pool, false});
    case TraceAction::kFreeRequested:
      return set_pending(e.address, true);
    case TraceAction::kFreeCompleted:
      return remove_block(e.address);
    case TraceAction::kSegmentAlloc:
      return add_memory(e.address, {e.size, e.stream, e.pool, false});
    case TraceAction::kSegmentMap:
      return add_memory(e.address, {e.size, e.stream, e.pool, true});
    case TraceAction::kSegmentFree:
    case TraceAction::kSegmentUnmap:
      return remove_memory(e.address, e.size, e.action == TraceAction::kSegmentUnmap);
    case TraceAction::kSnapshot:
    case TraceAction::kOutOfMemory:
    case TraceAction::kOther:
      break;
  }
  return true;
}

bool HeapState::undo(const TraceEvent& e) {
  switch (e.action) {
    case TraceAction::kAlloc:
      return remove_block(e.address);
    case TraceAction::kFreeRequested:
      return set_pending(e.address, false);
    case TraceAction::kFreeCompleted:
      return add_block(e.address, {e.size, e.stack, e.stream, e.pool, true});
    case TraceAction::kSegmentFree:
      return add_memory(e.address, {e.size, e.stream, e.pool, false});
    case TraceAction::kSegmentUnmap:
      return add_memory(e.address, {e.size, e.stream, e.pool, true});
    case TraceAction::kSegmentAlloc:
    case TraceAction::kSegmentMap:
      return remove_memory(e.address, e.size, e.action == TraceAction::kSegmentMap);
    case TraceAction::kSnapshot:
    case TraceAction::kOutOfMemory:
    case TraceAction::kOther:
      break;
  }
  return true;
}

bool HeapState::add_block(std::int64_t address, const LiveBlock& block) {
  if (!blocks_.try_emplace(address, block).second) return false;
  if (!block.pending) allocated_ += rounded(block.requested);
  return true;
}

bool HeapState::remove_block(std::int64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  if (!found->second.pending) allocated_ -= rounded(found->second.requested);
  blocks_.erase(found);
  return true;
}

bool HeapState::set_pending(std::int64_t address, bool pending) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.pending == pending) return false;
  found->second.pending = pending;
  allocated_ += (pending ? -1 : 1) * rounded(found->second.requested);
  return true;
}

/// Runs of mapped pages that touch are one, as in the snapshot's list.
void HeapState::join_next(std::map<std::int64_t, HeapSegment>::iterator segment) {
  const auto next = std::next(segment);
  if (next == segments_.end() || !segment->second.expandable || !next->second.expandable) return;
  if (segment->first + segment->second.size != next->first) return;
  if (segment->second.stream != next->second.stream || segment->second.pool != next->second.pool)
    return;
  segment->second.size += next->second.size;
  segments_.erase(next);
}

bool HeapState::add_memory(std::int64_t address, const HeapSegment& segment) {
  const auto [added, is_new] = segments_.try_emplace(address, segment);
  if (!is_new) return false;
  reserved_ += segment.size;
  if (!segment.expandable) return true;
  join_next(added);
  if (added != segments_.begin()) join_next(std::prev(added));
  return true;
}

bool HeapState::remove_memory(std::int64_t address, std::int64_t size, bool expandable) {
  auto found = segments_.upper_bound(address);
  if (found == segments_.begin()) return false;
  --found;
  const std::int64_t begin = found->first, end = begin + found->second.size;
  const HeapSegment whole = found->second;
  const bool inside = expandable ? address + size <= end : begin == address && whole.size == size;
  if (whole.expandable != expandable || !inside) return false;
  reserved_ -= size;
  if (address == begin) {
    segments_.erase(found);
  } else {
    found->second.size = address - begin;
  }
  if (address + size < end) {
    HeapSegment rest = whole;
    rest.size = end - address - size;
    segments_.emplace(address + size, rest);
  }
  return true;
}

HeapState heap_before(const Snapshot& snapshot, std::size_t device, std::int64_t& contradictions) {
  HeapState heap(snapshot.config);
  heap.load_end(snapshot, device);
  if (!snapshot.has_trace(device)) return heap;
  const auto& trace = snapshot.traces[device];
  for (auto event = trace.rbegin(); event != trace.rend(); ++event) {
    if (!heap.undo(*event)) ++contradictions;
  }
  return heap;
}

}  // namespace stoker
