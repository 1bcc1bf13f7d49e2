#include "snapshot/live_memory.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/text.h"
#include "snapshot/heap_state.h"

namespace stoker {
namespace {

/// Frames of the interpreter and of libraries that hand calls on say nothing about who asked.
bool is_users(const StackFrame& frame) {
  const std::string_view file = frame.file;
  if (!file.ends_with(".py")) return false;
  for (const std::string_view inner :
       {"/torch/", "/contextlib.py", "/functools.py", "/threading.py"}) {
    if (file.find(inner) != std::string_view::npos) return false;
  }
  return !file.starts_with("torch/") && !file.starts_with("<frozen");
}

/// "/home/me/project/model/block.py" -> "model/block.py"
std::string_view short_path(std::string_view path) {
  std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos && slash > 0) slash = path.rfind('/', slash - 1);
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string line_of(const StackFrame& frame) {
  std::string text(short_path(frame.file));
  if (text.empty()) return frame.function;
  if (frame.line > 0) text += ":" + std::to_string(frame.line);
  return text + " " + frame.function;
}

/// One segment with the blocks in it, by address.
struct Layout {
  std::int64_t address;
  const HeapSegment* segment;
  std::vector<std::pair<std::int64_t, const LiveBlock*>> blocks;
};

std::vector<Layout> layout_of(const HeapState& heap) {
  std::vector<Layout> result;
  for (const auto& [address, segment] : heap.segments()) result.push_back({address, &segment, {}});
  for (const auto& [address, block] : heap.blocks()) {
    const auto next = std::upper_bound(
        result.begin(), result.end(), address,
        [](std::int64_t wanted, const Layout& layout) { return wanted < layout.address; });
    if (next == result.begin()) continue;
    Layout& layout = *std::prev(next);
    if (address < layout.address + layout.segment->size) layout.blocks.push_back({address, &block});
  }
  for (Layout& layout : result) std::sort(layout.blocks.begin(), layout.blocks.end());
  return result;
}

void add_piece(IdleMemory& idle, std::int64_t bytes, bool whole) {
  idle.bytes += Bytes{bytes};
  if (whole) idle.whole += Bytes{bytes};
  idle.largest = std::max(idle.largest, Bytes{bytes});
  ++idle.pieces;
}

class Summary {
 public:
  Summary(const Snapshot& snapshot, const HeapState& heap) : snapshot_(snapshot), heap_(heap) {}

  LiveMemory run() {
    live_.reserved = Bytes{heap_.reserved()};
    const std::vector<Layout> layouts = layout_of(heap_);
    std::size_t placed = 0;
    for (const Layout& layout : layouts) {
      add_segment(layout);
      placed += layout.blocks.size();
    }
    if (placed < heap_.blocks().size()) add_strays(layouts);
    for (auto& [where, holder] : holders_) live_.holders.push_back(std::move(holder));
    std::stable_sort(
        live_.holders.begin(), live_.holders.end(),
        [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    return std::move(live_);
  }

  /// Idle memory that a request of that stream, pool and size class could use.
  [[nodiscard]] IdleMemory usable(const TraceEvent& request) const {
    IdleMemory idle;
    const bool small = request.size <= kSmallSize.count();
    for (const auto& [segment, piece, whole] : pieces_) {
      if (segment->stream != request.stream || segment->pool != request.pool) continue;
      // Runs of pages do not tell their size class; whole segments do.
      if (!segment->expandable && (segment->size == kSmallSegment.count()) != small) continue;
      add_piece(idle, piece, whole);
    }
    return idle;
  }

 private:
  void add_segment(const Layout& layout) {
    std::int64_t at = layout.address;
    const std::int64_t end = layout.address + layout.segment->size;
    for (std::size_t i = 0; i < layout.blocks.size(); ++i) {
      const auto& [address, block] = layout.blocks[i];
      if (address > at) add_idle(layout, address - at, false);
      const std::int64_t next = i + 1 < layout.blocks.size() ? layout.blocks[i + 1].first : end;
      const std::int64_t size = heap_.with_slack(*layout.segment, block->requested, next - address);
      add_block(*block, size);
      at = std::max(at, address + size);
    }
    if (end > at) add_idle(layout, end - at, layout.blocks.empty());
  }
  void add_idle(const Layout& layout, std::int64_t bytes, bool whole) {
    add_piece(live_.idle, bytes, whole);
    pieces_.push_back({layout.segment, bytes, whole});
  }
  void add_block(const LiveBlock& block, std::int64_t size) {
    (block.pending ? live_.pending : live_.allocated) += Bytes{size};
    live_.requested += Bytes{block.requested};
    const std::string where = user_line(snapshot_, block.stack);
    MemoryHolder& holder = holders_[where];
    holder.where = where;
    holder.bytes += Bytes{size};
    holder.requested += Bytes{block.requested};
    ++holder.blocks;
    if (Bytes{size} >= holder.largest) {
      holder.largest = Bytes{size};
      holder.stack = block.stack;
    }
  }
  /// Blocks in no known segment: of traces that do not fit their snapshot.
  void add_strays(const std::vector<Layout>& layouts) {
    std::map<std::int64_t, bool> inside;
    for (const Layout& layout : layouts) {
      for (const auto& [address, block] : layout.blocks) inside[address] = true;
    }
    for (const auto& [address, block] : heap_.blocks()) {
      if (inside.contains(address)) continue;
      add_block(block, heap_.rounded(block.requested));
      live_.astray += Bytes{heap_.rounded(block.requested)};
      ++live_.blocks_astray;
    }
  }

  struct Piece {
    const HeapSegment* segment;
    std::int64_t bytes;
    bool whole;
  };
  const Snapshot& snapshot_;
  const HeapState& heap_;
  LiveMemory live_;
  std::map<std::string, MemoryHolder> holders_;
  std::vector<Piece> pieces_;
};

std::string reason_of(const MemoryFailure& failure, const LiveMemory& live) {
  const auto bytes = [](Bytes b) { return human_bytes(b); };
  if (failure.device_free >= failure.asked) {
    return "CUDA reports more free memory than was asked for: a limit of the process "
           "(set_per_process_memory_fraction) was reached, or the device's free memory is in "
           "pieces";
  }
  if (failure.usable.bytes >= failure.requested) {
    return bytes(failure.usable.bytes) + " lie idle where the request could use them, but in " +
           with_commas(failure.usable.pieces) + " pieces of at most " +
           bytes(failure.usable.largest) + ": fragmentation";
  }
  if (live.idle.bytes >= failure.requested) {
    return bytes(live.idle.bytes) + " lie idle, but only " + bytes(failure.usable.bytes) +
           " of it in the stream, pool and size class of the request";
  }
  return "the device is full: " + bytes(live.allocated) + " are in use and only " +
         bytes(live.idle.bytes) + " lie idle";
}

}  // namespace

std::string_view name_of(MemoryMoment moment) {
  constexpr std::string_view kNames[] = {"peak", "oom", "end"};
  return kNames[static_cast<std::size_t>(moment)];
}

std::string user_line(const Snapshot& snapshot, StackId stack) {
  if (stack == kNoStack) return "(no stack recorded)";
  const auto& frames = snapshot.stacks[static_cast<std::size_t>(stack)];
  const StackFrame* python = nullptr;
  for (const std::uint32_t id : frames) {
    const StackFrame& frame = snapshot.frames[id];
    if (is_users(frame)) return line_of(frame);
    if (!python && frame.file.ends_with(".py")) python = &frame;
  }
  if (python) return line_of(*python);
  return "(no Python frame: the backward pass, or a thread of its own)";
}

SnapshotHistory::SnapshotHistory(const Snapshot& snapshot, std::size_t device)
    : snapshot_(snapshot), device_(device) {
  HeapState heap = heap_before(snapshot, device, coverage_.contradictions);
  reserved_peak_ = Bytes{heap.reserved()};
  if (!snapshot.has_trace(device)) return;
  coverage_.reserved_before = Bytes{heap.reserved()};
  coverage_.blocks_before = static_cast<std::int64_t>(heap.blocks().size());
  coverage_.bytes_before = Bytes{heap.allocated()};
  const auto& trace = snapshot.traces[device];
  coverage_.events = static_cast<std::int64_t>(trace.size());
  std::int64_t most = heap.allocated();
  for (std::size_t i = 0; i < trace.size(); ++i) {
    (void)heap.apply(trace[i]);
    if (trace[i].action == TraceAction::kAlloc) ++coverage_.allocations;
    if (trace[i].action == TraceAction::kFreeCompleted) ++coverage_.frees;
    if (trace[i].action == TraceAction::kOutOfMemory) {
      ++coverage_.failures;
      failure_event_ = static_cast<std::int64_t>(i);
    }
    if (heap.allocated() > most) {
      most = heap.allocated();
      peak_event_ = static_cast<std::int64_t>(i);
    }
    reserved_peak_ = std::max(reserved_peak_, Bytes{heap.reserved()});
  }
}

bool SnapshotHistory::has(MemoryMoment moment) const {
  switch (moment) {
    case MemoryMoment::kPeak:
      return coverage_.events > 0;
    case MemoryMoment::kOutOfMemory:
      return failure_event_ >= 0;
    case MemoryMoment::kEnd:
      break;
  }
  return true;
}

LiveMemory SnapshotHistory::at(MemoryMoment moment) const {
  HeapState heap(snapshot_.config);
  std::int64_t event = coverage_.events - 1;
  if (moment == MemoryMoment::kEnd) {
    heap.load_end(snapshot_, device_);
  } else {
    event = moment == MemoryMoment::kPeak ? peak_event_ : failure_event_;
    std::int64_t ignored = 0;
    heap = heap_before(snapshot_, device_, ignored);
    for (std::int64_t i = 0; i <= event; ++i)
      (void)heap.apply(snapshot_.traces[device_][static_cast<std::size_t>(i)]);
  }
  Summary summary(snapshot_, heap);
  LiveMemory live = summary.run();
  live.moment = moment;
  live.event = event;
  if (event >= 0) {
    const TraceEvent& at = snapshot_.traces[device_][static_cast<std::size_t>(event)];
    live.time_us = at.time_us;
    if (moment == MemoryMoment::kOutOfMemory) {
      MemoryFailure failure;
      failure.requested = Bytes{at.size};
      failure.asked = segment_size(Bytes{at.size}, snapshot_.config);
      failure.device_free = Bytes{at.address};
      failure.usable = summary.usable(at);
      failure.where = user_line(snapshot_, at.stack);
      failure.why = reason_of(failure, live);
      live.failure = std::move(failure);
    }
  }
  return live;
}

}  // namespace stoker
