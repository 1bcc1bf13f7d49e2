#include "snapshot/memory_course.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "snapshot/heap_state.h"
#include "snapshot/live_memory.h"

namespace stoker {
namespace {

/// Which of the wanted lines a stack belongs to; behind them: none.
class HolderIndex {
 public:
  HolderIndex(const Snapshot& snapshot, const std::vector<std::string>& holders)
      : snapshot_(snapshot), holders_(holders) {}

  std::size_t of(StackId stack) {
    const auto [found, is_new] = known_.try_emplace(stack, holders_.size());
    if (is_new) {
      const auto same =
          std::find(holders_.begin(), holders_.end(), user_line(snapshot_, found->first));
      found->second = static_cast<std::size_t>(same - holders_.begin());
    }
    return found->second;
  }

 private:
  const Snapshot& snapshot_;
  const std::vector<std::string>& holders_;
  std::map<StackId, std::size_t> known_;
};

/// What changes from event to event.
struct Held {
  std::vector<std::int64_t> bytes;
  std::int64_t all = 0;

  void add(std::size_t holder, std::int64_t amount) {
    bytes[holder] += amount;
    all += amount;
  }
};

void keep(const Held& held, std::int64_t event, std::int64_t reserved, MemoryCourse& course) {
  course.event.push_back(event);
  course.reserved.emplace_back(reserved);
  for (std::size_t h = 0; h < held.bytes.size(); ++h)
    course.holders[h].bytes.emplace_back(held.bytes[h]);
}

void add_part(SegmentFill& segment, SegmentPart part) {
  if (part.size <= 0) return;
  if (part.kind == SegmentPart::Kind::kIdle) {
    segment.idle += part.size;
    segment.largest_idle = std::max(segment.largest_idle, part.size);
    ++segment.idle_pieces;
  }
  segment.parts.push_back(std::move(part));
}

}  // namespace

MemoryCourse memory_course(const Snapshot& snapshot, std::size_t device,
                           const std::vector<std::string>& holders, std::size_t points) {
  MemoryCourse course;
  if (!snapshot.has_trace(device) || points == 0) return course;
  for (const std::string& where : holders) course.holders.push_back({where, {}});
  course.holders.push_back({"all other lines", {}});
  std::int64_t ignored = 0;
  HeapState heap = heap_before(snapshot, device, ignored);
  HolderIndex index(snapshot, holders);
  Held held{std::vector<std::int64_t>(course.holders.size()), 0};
  for (const auto& [address, block] : heap.blocks())
    held.add(index.of(block.stack), heap.rounded(block.requested));
  const auto& trace = snapshot.traces[device];
  const std::size_t stretch = (trace.size() + points - 1) / points;
  Held most = held;
  std::int64_t at = -1, reserved = heap.reserved();
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const TraceEvent& event = trace[i];
    const auto before = heap.blocks().find(event.address);
    const LiveBlock gone = before == heap.blocks().end() ? LiveBlock{} : before->second;
    if (heap.apply(event)) {
      if (event.action == TraceAction::kAlloc)
        held.add(index.of(event.stack), heap.rounded(event.size));
      if (event.action == TraceAction::kFreeCompleted)
        held.add(index.of(gone.stack), -heap.rounded(gone.requested));
    }
    if (event.action == TraceAction::kOutOfMemory)
      course.failures.push_back(static_cast<std::int64_t>(i));
    if (i % stretch == 0 || held.all > most.all) {
      most = held;
      at = static_cast<std::int64_t>(i);
      reserved = heap.reserved();
    }
    if ((i + 1) % stretch == 0 || i + 1 == trace.size()) keep(most, at, reserved, course);
  }
  return course;
}

std::vector<SegmentFill> segments_at(const Snapshot& snapshot, std::size_t device,
                                     std::int64_t event) {
  HeapState heap(snapshot.config);
  const std::int64_t last = snapshot.has_trace(device)
                                ? static_cast<std::int64_t>(snapshot.traces[device].size()) - 1
                                : -1;
  if (event >= last) {
    heap.load_end(snapshot, device);
  } else {
    std::int64_t ignored = 0;
    heap = heap_before(snapshot, device, ignored);
    for (std::int64_t i = 0; i <= event; ++i)
      (void)heap.apply(snapshot.traces[device][static_cast<std::size_t>(i)]);
  }
  std::map<std::int64_t, const LiveBlock*> blocks;
  for (const auto& [address, block] : heap.blocks()) blocks[address] = &block;
  std::vector<SegmentFill> all;
  for (const auto& [address, segment] : heap.segments()) {
    SegmentFill fill{address,      segment.size,       0, 0, 0, segment.stream,
                     segment.pool, segment.expandable, {}};
    std::int64_t at = 0;
    for (auto b = blocks.lower_bound(address);
         b != blocks.end() && b->first < address + segment.size; ++b) {
      const std::int64_t offset = b->first - address;
      add_part(fill, {SegmentPart::Kind::kIdle, at, offset - at, ""});
      const auto next = std::next(b);
      const bool is_last = next == blocks.end() || next->first >= address + segment.size;
      const std::int64_t room = (is_last ? address + segment.size : next->first) - b->first;
      const std::int64_t size =
          std::min(heap.with_slack(segment, b->second->requested, room), room);
      add_part(fill, {b->second->pending ? SegmentPart::Kind::kPending : SegmentPart::Kind::kInUse,
                      offset, size, user_line(snapshot, b->second->stack)});
      at = offset + size;
    }
    add_part(fill, {SegmentPart::Kind::kIdle, at, segment.size - at, ""});
    all.push_back(std::move(fill));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const SegmentFill& a, const SegmentFill& b) { return a.idle > b.idle; });
  return all;
}

}  // namespace stoker
