#include "snapshot/snapshot_replay.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "snapshot/segment_map.h"

namespace stoker {
namespace {

using Kind = DeviceEvent::Kind;

/// How it may have come to what PyTorch asked of the device; the trace does not say.
enum class Story : std::uint8_t {
  kPlain,     ///< the request alone was the cause
  kEmptied,   ///< torch.cuda.empty_cache() before it
  kTakenOver  ///< single segments were given back, by rules that need what is not recorded
};

/// One attempt under one rule for ties.
class Attempt {
 public:
  Attempt(const Snapshot& snapshot, std::size_t device, const SnapshotReplayOptions& options,
          TieRule rule)
      : snapshot_(snapshot),
        device_(device),
        trace_(snapshot.traces[device]),
        knows_capacity_(options.device.capacity.has_value()),
        allocator_(config_of(snapshot, options), options.device) {
    result_.rule = rule;
    result_.events = static_cast<std::int64_t>(trace_.size());
    allocator_.record_device_events();
    add_lanes();
  }

  SnapshotReplay run() {
    for (at_ = 0; at_ < trace_.size() && result_.difference.empty(); ++at_) {
      step(trace_[at_]);
      if (result_.difference.empty()) ++result_.compared;
    }
    if (result_.difference.empty()) settle();
    if (result_.difference.empty()) compare_end();
    result_.stats = allocator_.stats();
    return std::move(result_);
  }

 private:
  static AllocatorConfig config_of(const Snapshot& snapshot, const SnapshotReplayOptions& options) {
    AllocatorConfig config = snapshot.config;
    config.memory_fraction = options.memory_fraction;
    return config;
  }

  /// One for each stream of each pool, in the order of the streams' handles, which is the order in
  /// which PyTorch keeps the free blocks.
  void add_lanes() {
    std::map<std::tuple<std::uint16_t, std::int64_t, std::uint16_t>, bool> wanted;
    for (const TraceEvent& event : trace_)
      wanted[{event.pool, snapshot_.streams[event.stream], event.stream}] = true;
    for (const auto& [key, unused] : wanted) {
      const auto& [pool, handle, stream] = key;
      lanes_[lane_key(pool, stream)] = allocator_.add_lane(pool);
    }
  }
  static std::uint32_t lane_key(std::uint16_t pool, std::uint16_t stream) {
    return std::uint32_t{pool} << 16 | stream;
  }
  [[nodiscard]] Lane lane(const TraceEvent& event) const {
    return lanes_.at(lane_key(event.pool, event.stream));
  }

  void differ(const std::string& what) {
    if (!result_.difference.empty()) return;
    std::string place = "at the end of the trace";
    if (at_ < trace_.size()) {
      place = "event " + with_commas(static_cast<std::int64_t>(at_)) + " (" +
              std::string(name_of(trace_[at_].action)) + " of " +
              human_bytes(Bytes{trace_[at_].size}) + ")";
    }
    result_.difference = place + ": " + what;
  }

  void step(const TraceEvent& event) {
    switch (event.action) {
      case TraceAction::kSegmentAlloc:
        return wait(Kind::kMalloc, event);
      case TraceAction::kSegmentFree:
        return wait(Kind::kFree, event);
      case TraceAction::kSegmentMap:
        return wait(Kind::kMap, event);
      case TraceAction::kSegmentUnmap:
        return wait(Kind::kUnmap, event);
      case TraceAction::kAlloc:
        return allocate(event);
      case TraceAction::kOutOfMemory:
        return fail_to_allocate(event);
      case TraceAction::kFreeRequested:
        settle();
        return begin_free(event);
      case TraceAction::kFreeCompleted:
        return complete_free(event);
      case TraceAction::kSnapshot:
      case TraceAction::kOther:
        return;
    }
  }

  /// PyTorch notes what it asks of the device before the allocation that it is for.
  void wait(Kind kind, const TraceEvent& event) {
    waiting_.push_back({kind, lane(event), Bytes{event.address}, Bytes{event.size}});
  }

  void allocate(const TraceEvent& event) {
    if (live_.contains(event.address)) return differ("its address is in use already");
    if (event.size == 0) return differ("a request for no bytes");
    serve(event);
    if (!result_.difference.empty()) return;
    live_[event.address] = block_;
    ++result_.allocations;
  }

  /// The request failed although the cache was given back: no block fits, and the device (as far as
  /// is known) has no room.
  void fail_to_allocate(const TraceEvent& event) {
    if (event.size > 0) serve(event);
  }

  void serve(const TraceEvent& event) {
    const bool releases = std::any_of(waiting_.begin(), waiting_.end(),
                                      [](const DeviceEvent& e) { return gives_back(e.kind); });
    if (held_.empty() && !releases && event.action == TraceAction::kAlloc) {
      const std::string why = tell(allocator_, Story::kPlain, 0, false, event);
      return why.empty() ? accept() : differ(why);
    }
    // Some of the frees that waited for another stream were noticed before the request, the others
    // when the allocator had to wait for all streams: a request that fails looks only at the first.
    std::vector<std::size_t> noticed{held_.size()};
    if (releases || event.action == TraceAction::kOutOfMemory) {
      for (std::size_t n = 0; n < held_.size(); ++n) noticed.push_back(n);
    }
    std::string first;
    for (const Story story : {Story::kPlain, Story::kEmptied, Story::kTakenOver}) {
      if (story != Story::kPlain && !releases) break;
      if (story == Story::kTakenOver && snapshot_.config.garbage_collection_threshold <= 0) break;
      for (const std::size_t n : noticed) {
        CachingAllocator trial = allocator_;
        const std::string why = tell(trial, story, n, story == Story::kPlain, event);
        if (first.empty()) first = why;
        if (!why.empty()) continue;
        allocator_ = std::move(trial);
        if (story == Story::kTakenOver) ++result_.releases_taken_over;
        return accept();
      }
    }
    differ(first);
  }

  /// The least that the device must have had, by what it served for this request.
  [[nodiscard]] Bytes least_capacity() const {
    Bytes reserved = allocator_.stats().reserved, most = reserved;
    for (const DeviceEvent& event : waiting_) {
      reserved += gives_back(event.kind) ? -event.bytes : event.bytes;
      most = std::max(most, reserved);
    }
    return most;
  }

  /// Acts the story out and says what differs from the trace; nothing when it is the same. Leaves
  /// the block in `block_` and what was asked of the device in `done_`. `noticed` is how many of
  /// the held frees are finished before the request; `full` when it found the device full.
  std::string tell(CachingAllocator& allocator, Story story, std::size_t noticed, bool full,
                   const TraceEvent& event) {
    place_segment(allocator);
    for (std::size_t n = 0; n < noticed; ++n) allocator.finish_free(held_[n]);
    if (story == Story::kEmptied) allocator.empty_cache();
    if (story == Story::kTakenOver && !take_over(allocator)) return "what was given back is in use";
    const bool wants = event.action == TraceAction::kAlloc;
    if (full && !knows_capacity_) allocator.limit_device(least_capacity());
    const auto got = allocator.allocate(Bytes{event.size}, lane(event));
    allocator.restore_device();
    done_ = allocator.take_device_events();
    if (!got && !result_.first_failure) result_.first_failure = got.error();
    if (got.has_value() != wants) {
      return wants ? "the simulator is out of memory" : "the simulator could serve the request";
    }
    if (allocator.pending_frees() != freeing_.size()) {
      return "the simulator waited for other streams, PyTorch did not (or the other way round)";
    }
    std::string why = compare_device_events(done_, waiting_, segments_, allocator);
    if (!why.empty() || !wants) return why;
    block_ = *got;
    return compare_place(allocator, event);
  }

  [[nodiscard]] std::string compare_place(const CachingAllocator& allocator,
                                          const TraceEvent& event) const {
    const std::int64_t simulated = allocator.address_of(block_).count();
    auto real = segments_.real(simulated);
    for (std::size_t k = 0; k < done_.size(); ++k) {
      // In a segment that has just been made, which is not in the map yet.
      if (begins_new_segment(done_[k], segments_, allocator))
        real = waiting_[k].address.count() + simulated - done_[k].address.count();
    }
    if (real == event.address) return {};
    return "PyTorch placed it at " + hex_address(event.address) + ", the simulator at " +
           (real ? hex_address(*real) : std::string("an address of its own"));
  }

  /// Under the rule of addresses the next segment begins where CUDA put it.
  void place_segment(CachingAllocator& allocator) const {
    std::optional<Bytes> address;
    if (result_.rule == TieRule::kLowestAddress) {
      for (const DeviceEvent& event : waiting_) {
        if (!gives_back(event.kind) && !address) address = event.address;
      }
    }
    allocator.place_next_segment(address);
  }

  bool take_over(CachingAllocator& allocator) const {
    for (const DeviceEvent& event : waiting_) {
      if (event.kind != Kind::kFree) continue;
      const auto simulated = segments_.simulated_begin(event.address.count());
      if (!simulated || !allocator.release_segment_at(Bytes{*simulated})) return false;
    }
    return true;
  }

  /// What the simulator did is what PyTorch did: new segments get their real addresses.
  void accept() {
    held_.clear();
    for (std::size_t k = 0; k < done_.size(); ++k) {
      const std::int64_t simulated = done_[k].address.count();
      if (done_[k].kind == Kind::kFree) segments_.remove(simulated);
      if (!begins_new_segment(done_[k], segments_, allocator_)) continue;
      segments_.add(simulated, waiting_[k].address.count());
      ++result_.segments;
    }
    waiting_.clear();
    done_.clear();
  }

  // Frees.

  void begin_free(const TraceEvent& event) {
    const auto found = live_.find(event.address);
    if (found == live_.end()) return differ("frees what was never allocated");
    allocator_.begin_free(found->second);
    freeing_[event.address] = found->second;
    live_.erase(found);
  }

  /// Right after its request the free is done at once, unless memory is given back or runs out
  /// next: then, as later, it may have waited for another stream, and whether the next request saw
  /// the block shows only in what that one did.
  void complete_free(const TraceEvent& event) {
    const bool adjacent = at_ > 0 && trace_[at_ - 1].action == TraceAction::kFreeRequested &&
                          trace_[at_ - 1].address == event.address;
    const bool at_once = adjacent && held_.empty() && !may_be_for_a_failure(at_ + 1);
    if (!freeing_.contains(event.address)) {
      settle();  // recording may leave free_requested out
      begin_free(event);
      if (!result_.difference.empty()) return;
    }
    const auto found = freeing_.find(event.address);
    held_.push_back(found->second);
    freeing_.erase(found);
    if (at_once) settle();
  }

  [[nodiscard]] bool may_be_for_a_failure(std::size_t next) const {
    if (next >= trace_.size()) return false;
    const TraceAction action = trace_[next].action;
    return action == TraceAction::kFreeCompleted || action == TraceAction::kSegmentFree ||
           action == TraceAction::kSegmentUnmap || action == TraceAction::kOutOfMemory;
  }

  /// What is still open belongs to no allocation: completed frees, and torch.cuda.empty_cache().
  void settle() {
    for (const BlockId block : held_) allocator_.finish_free(block);
    held_.clear();
    if (waiting_.empty()) return;
    allocator_.empty_cache();
    done_ = allocator_.take_device_events();
    if (!freeing_.empty()) return differ("memory was given back before all streams were done");
    const std::string why = compare_device_events(done_, waiting_, segments_, allocator_);
    why.empty() ? accept() : differ(why);
  }

  // The end.

  struct BlockEnd {
    std::int64_t size, requested;
    SnapshotBlockState state;
    bool operator==(const BlockEnd&) const = default;
  };

  void compare_end() {
    std::unordered_map<std::int64_t, BlockEnd> simulated;
    for (const auto& segment : allocator_.segments()) {
      for (const auto& block : segment.blocks) {
        if (!block.mapped) continue;
        const auto state = block.pending     ? SnapshotBlockState::kPendingFree
                           : block.allocated ? SnapshotBlockState::kAllocated
                                             : SnapshotBlockState::kInactive;
        simulated[segments_.real(block.address).value_or(block.address)] = {block.size,
                                                                            block.requested, state};
      }
    }
    std::size_t count = 0;
    for (const SnapshotSegment& segment : snapshot_.segments) {
      if (segment.device != static_cast<std::int64_t>(device_)) continue;
      for (const SnapshotBlock& block : segment.blocks) {
        ++count;
        const auto found = simulated.find(block.address);
        if (found == simulated.end() ||
            found->second != BlockEnd{block.size, block.requested, block.state}) {
          return differ("the snapshot has a block of " + human_bytes(Bytes{block.size}) + " at " +
                        hex_address(block.address) + " that the simulator has not");
        }
      }
    }
    if (count != simulated.size()) {
      return differ("the simulator has " + std::to_string(simulated.size()) +
                    " blocks, the snapshot " + std::to_string(count));
    }
    result_.same_end = true;
  }

  const Snapshot& snapshot_;
  std::size_t device_;
  const std::vector<TraceEvent>& trace_;
  bool knows_capacity_;
  CachingAllocator allocator_;
  std::unordered_map<std::uint32_t, Lane> lanes_;
  SegmentMap segments_;
  std::unordered_map<std::int64_t, BlockId> live_, freeing_;  ///< by real address
  std::vector<DeviceEvent> waiting_;  ///< of the trace, not yet answered by the simulator
  std::vector<DeviceEvent> done_;     ///< the simulator's answer
  std::vector<BlockId> held_;  ///< completed frees of which it is open when they were noticed
  BlockId block_{};
  std::size_t at_ = 0;
  SnapshotReplay result_;
};

/// Streams times pools; a lane's number has 15 bits.
constexpr std::size_t kMostLanes = 30'000;

/// Bytes reserved before the trace begins: those at its end, less what it added.
std::int64_t reserved_before(const Snapshot& snapshot, std::size_t device) {
  std::int64_t bytes = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == static_cast<std::int64_t>(device)) bytes += segment.size;
  }
  for (const TraceEvent& event : snapshot.traces[device]) {
    if (event.action == TraceAction::kSegmentAlloc || event.action == TraceAction::kSegmentMap)
      bytes -= event.size;
    if (event.action == TraceAction::kSegmentFree || event.action == TraceAction::kSegmentUnmap)
      bytes += event.size;
  }
  return bytes;
}

}  // namespace

std::string_view name_of(TieRule rule) {
  return rule == TieRule::kOldestSegment ? "oldest segment first" : "lowest address first";
}

SnapshotReplay replay_snapshot(const Snapshot& snapshot, std::size_t device,
                               const SnapshotReplayOptions& options) {
  SnapshotReplay none;
  if (!snapshot.has_trace(device)) {
    none.not_replayed =
        "the snapshot holds no trace; record one with torch.cuda.memory._record_memory_history()";
    return none;
  }
  none.events = static_cast<std::int64_t>(snapshot.traces[device].size());
  if (const std::int64_t before = reserved_before(snapshot, device); before != 0) {
    none.not_replayed = "the trace does not begin with an empty allocator (" +
                        human_bytes(Bytes{std::max<std::int64_t>(before, 0)}) +
                        " were reserved before); record from the start of the process, without "
                        "max_entries";
    return none;
  }
  if (snapshot.streams.size() * snapshot.pools.size() > kMostLanes) {
    none.not_replayed = "more streams and memory pools than can be replayed";
    return none;
  }
  SnapshotReplay best;
  for (const TieRule rule : {TieRule::kOldestSegment, TieRule::kLowestAddress}) {
    SnapshotReplay attempt = Attempt(snapshot, device, options, rule).run();
    attempt.from_start = true;
    const bool better = rule == TieRule::kOldestSegment || attempt.compared > best.compared ||
                        (attempt.compared == best.compared && attempt.same_end && !best.same_end);
    if (better) best = std::move(attempt);
    if (best.identical()) break;
  }
  return best;
}

}  // namespace stoker
