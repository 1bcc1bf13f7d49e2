#include "snapshot/explanation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "base/counted.h"
#include "base/text.h"
#include "snapshot/growth.h"

namespace stoker {
namespace {

// From here on a share is worth a sentence.
constexpr double kMuchIdle = 0.1;      ///< of what is reserved
constexpr double kMuchPending = 0.02;  ///< of what is allocated
constexpr double kMuchGrowth = 0.02;   ///< of what is allocated
constexpr double kGain = 0.02;         ///< of what is reserved, by another setting

Result<std::size_t> choose_device(const Snapshot& snapshot, const ExplainOptions& options,
                                  const std::string& where) {
  const std::vector<std::size_t> devices = snapshot.devices();
  if (options.device) {
    if (std::find(devices.begin(), devices.end(), *options.device) != devices.end())
      return *options.device;
    std::string known;
    for (const std::size_t d : devices) known += (known.empty() ? "" : ", ") + std::to_string(d);
    return fail(ErrorCode::kNotFound,
                "holds nothing of device " + std::to_string(*options.device) + ", only of " + known,
                where);
  }
  std::map<std::size_t, std::int64_t> reserved;
  for (const SnapshotSegment& segment : snapshot.segments)
    reserved[static_cast<std::size_t>(segment.device)] += segment.size;
  std::size_t best = devices.front();
  for (const std::size_t d : devices) {
    if (reserved[d] > reserved[best]) best = d;
  }
  return best;
}

/// The requests of a trace from the start under another setting.
Bytes reserved_peak_with(const Snapshot& snapshot, std::size_t device,
                         const AllocatorConfig& config, std::optional<Bytes> device_memory) {
  CachingAllocator allocator(config, {std::nullopt, device_memory});
  std::map<std::pair<std::uint16_t, std::uint16_t>, Lane> lanes;
  std::map<std::int64_t, BlockId> live;
  for (const TraceEvent& event : snapshot.traces[device]) {
    if (event.action == TraceAction::kAlloc && event.size > 0) {
      const auto [lane, is_new] = lanes.try_emplace({event.pool, event.stream}, Lane{});
      if (is_new) lane->second = allocator.add_lane(event.pool);
      if (const auto block = allocator.allocate(Bytes{event.size}, lane->second))
        live[event.address] = *block;
    } else if (event.action == TraceAction::kFreeCompleted) {
      const auto found = live.find(event.address);
      if (found == live.end()) continue;
      allocator.free(found->second);
      live.erase(found);
    }
  }
  return allocator.stats().reserved_peak;
}

/// max_split_size_mb that people set: beyond 20 MiB, which PyTorch refuses to go below.
constexpr std::array<std::int64_t, 5> kSplitLimits{32, 64, 128, 256, 512};

/// Keeps those settings against fragmentation under which the replay reserves less.
void try_settings(const Snapshot& snapshot, const ExplainOptions& options, SnapshotExplanation& e) {
  if (!e.replay.identical()) return;
  const auto peak_with = [&](const AllocatorConfig& config) {
    return reserved_peak_with(snapshot, e.device, config, options.device_memory);
  };
  AllocatorConfig config = snapshot.config;
  if (!config.expandable_segments) {
    config.expandable_segments = true;
    e.reserved_peak_expandable = peak_with(config);
  }
  if (snapshot.config.expandable_segments || snapshot.config.max_split_size != kNoSplitLimit)
    return;
  for (const std::int64_t mebibytes : kSplitLimits) {
    config = snapshot.config;
    config.max_split_size = Bytes(mebibytes * kMiB.count());
    const Bytes peak = peak_with(config);
    if (!e.split_limit || peak < e.split_limit->reserved_peak)
      e.split_limit = SplitLimit{mebibytes, peak};
  }
}

/// The segment in which most lies idle beside blocks in use, at the end of the file.
void name_split_segment(const Snapshot& snapshot, SnapshotExplanation& e) {
  const SnapshotSegment* worst = nullptr;
  std::int64_t most = 0;
  const auto held = [](const SnapshotSegment& segment) {
    std::int64_t bytes = 0;
    for (const SnapshotBlock& block : segment.blocks)
      bytes += block.state == SnapshotBlockState::kInactive ? 0 : block.size;
    return bytes;
  };
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (static_cast<std::size_t>(segment.device) != e.device || held(segment) == 0) continue;
    const std::int64_t idle = segment.size - held(segment);
    if (idle > most) worst = &segment, most = idle;
  }
  const bool much = e.live.failure ? most >= e.live.failure->requested.count()
                                   : static_cast<double>(most) >
                                         kMuchIdle * static_cast<double>(e.live.reserved.count());
  if (worst == nullptr || !much) return;
  const SnapshotBlock* largest = nullptr;
  std::int64_t blocks = 0, pieces = 0;
  bool before = false;
  for (const SnapshotBlock& block : worst->blocks) {
    const bool free = block.state == SnapshotBlockState::kInactive;
    pieces += free && !before ? 1 : 0;
    before = free;
    if (free) continue;
    ++blocks;
    if (largest == nullptr || block.size > largest->size) largest = &block;
  }
  char address[32];
  std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(worst->address));
  e.why.push_back(
      "fragmentation: of the segment of " + human_bytes(Bytes(worst->size)) + " at " + address +
      ", " + human_bytes(Bytes(most)) + " lie idle in " + with_commas(pieces) +
      (pieces == 1 ? " piece" : " pieces") + " and cannot be given back, held by " +
      with_commas(blocks) + (blocks == 1 ? " block" : " blocks") + " of " +
      human_bytes(Bytes(worst->size - most)) +
      (largest->stack == kNoStack ? std::string()
                                  : ", the largest from " + user_line(snapshot, largest->stack)));
}

void say_why(SnapshotExplanation& e) {
  const LiveMemory& live = e.live;
  if (live.failure) {
    const std::string& where = live.failure->where;
    e.why.push_back("a request for " + human_bytes(live.failure->requested) + " " +
                    (where.starts_with("(") ? where : "(" + where + ")") +
                    " asked the device for " + human_bytes(live.failure->asked) + ", " +
                    (live.failure->device_free.count() < 0
                         ? "and what was free there was not recorded"
                         : human_bytes(live.failure->device_free) + " were free there"));
    e.why.push_back(live.failure->why);
  }
  const bool said = live.failure && live.failure->usable.pieces == live.idle.pieces;
  if (live.idle.pieces > 0 && !said) {
    e.why.push_back(human_bytes(live.idle.bytes) + " lie idle in " + with_commas(live.idle.pieces) +
                    " pieces, the largest " + human_bytes(live.idle.largest) + "; " +
                    human_bytes(live.idle.whole) + " in segments that hold nothing");
  }
  const Bytes slack = live.allocated + live.pending - live.requested;
  if (slack.count() > 0)
    e.why.push_back(human_bytes(slack) + " of what is allocated is rounding that nobody asked for");
  if (live.pending.count() > 0) {
    e.why.push_back(human_bytes(live.pending) +
                    " are freed but wait for another stream (record_stream)");
  }
  if (!e.coverage.from_start() && e.coverage.events > 0) {
    e.why.push_back(human_bytes(e.coverage.bytes_before) + " in " +
                    with_commas(e.coverage.blocks_before) +
                    " blocks were allocated before the trace begins; worked out backwards from the "
                    "segments at its end");
  }
}

/// What piles up from step to step, and how to let go of it.
void name_growth(const Snapshot& snapshot, SnapshotExplanation& e) {
  if (e.live.moment == MemoryMoment::kEnd && e.coverage.events == 0) return;
  constexpr std::size_t kMostLines = 3;
  std::string lines;
  std::size_t named = 0;
  for (const GrowingHolder& g : growing_holders(snapshot, e.device, e.live.event)) {
    const Bytes held = e.live.allocated + e.live.pending;
    if (named == kMostLines || held.count() == 0 || g.bytes / held < kMuchGrowth) break;
    e.why.push_back("memory piles up: " + human_bytes(g.bytes) + " in " +
                    counted(g.blocks, "block") + " from " + g.where + " stay, of " +
                    with_commas(g.cycles) + " of the " + with_commas(g.of_cycles) +
                    " times that memory rises and falls (a step, as a rule)");
    lines += (named++ == 0 ? "" : ", ") + g.where;
  }
  if (named > 0)
    e.advice.push_back(
        "let go of what " + lines +
        " keeps from step to step: numbers in place of tensors (.item(), "
        ".detach().cpu()), torch.no_grad() in validation, no list or cache that only "
        "grows");
}

void advise(const Snapshot& snapshot, SnapshotExplanation& e) {
  const LiveMemory& live = e.live;
  const double idle = live.reserved.count() > 0 ? live.idle.bytes / live.reserved : 0;
  if (live.blocks_astray > 0) return;  // nothing can be concluded from such figures
  const bool fragmented =
      live.failure ? live.failure->usable.bytes >= live.failure->requested : idle > kMuchIdle;
  if (e.reserved_peak_expandable && *e.reserved_peak_expandable / e.reserved_peak < 1 - kGain) {
    e.advice.push_back(
        "PYTORCH_ALLOC_CONF=expandable_segments:True: the same requests would have "
        "reserved " +
        human_bytes(*e.reserved_peak_expandable) + " at most instead of " +
        human_bytes(e.reserved_peak) + " (simulated)");
  }
  if (e.split_limit && e.split_limit->reserved_peak / e.reserved_peak < 1 - kGain) {
    e.advice.push_back(
        "PYTORCH_ALLOC_CONF=max_split_size_mb:" + std::to_string(e.split_limit->mebibytes) +
        ": the same requests would have reserved " + human_bytes(e.split_limit->reserved_peak) +
        " at most instead of " + human_bytes(e.reserved_peak) + " (simulated)");
  }
  if (fragmented && !snapshot.config.expandable_segments && !e.reserved_peak_expandable) {
    e.advice.push_back(
        "PYTORCH_ALLOC_CONF=expandable_segments:True may join the idle pieces; a "
        "trace from the start of the process would tell how far");
  }
  if (live.failure && !fragmented && !live.holders.empty()) {
    e.advice.push_back("free or shrink what is held, largest first: " + live.holders[0].where +
                       " (" + human_bytes(live.holders[0].bytes) +
                       "); `stoker plan` simulates smaller batches, mixed precision and "
                       "checkpointing");
  }
  if (live.pending.count() > 0 && live.pending / (live.allocated + live.pending) > kMuchPending)
    e.advice.push_back(
        "wait for the other stream before the tensors are dropped, or keep them until "
        "then instead of record_stream: their memory cannot be had again meanwhile");
  if (live.moment == MemoryMoment::kEnd && live.idle.whole.count() > 0 && idle > kMuchIdle)
    e.advice.push_back("torch.cuda.empty_cache() would give " + human_bytes(live.idle.whole) +
                       " back to other processes; this one does not need it");
}

void name_missing(const Snapshot& snapshot, SnapshotExplanation& e) {
  const char* record = "torch.cuda.memory._record_memory_history()";
  if (e.coverage.events == 0) {
    e.missing.push_back(std::string("peak and failures: there is no trace; call ") + record +
                        " at the start of the program");
  }
  const bool no_stacks = std::all_of(e.live.holders.begin(), e.live.holders.end(),
                                     [](const MemoryHolder& h) { return h.stack == kNoStack; });
  if (no_stacks && !e.live.holders.empty())
    e.missing.push_back(
        "lines of code: no stacks were recorded; leave `context` of "
        "_record_memory_history at \"all\"");
  if (!snapshot.has_settings)
    e.missing.push_back(
        "the allocator's settings: key allocator_settings is not there; PyTorch's "
        "defaults are assumed");
  if (e.live.blocks_astray > 0) {
    e.missing.push_back("segments of " + with_commas(e.live.blocks_astray) + " blocks (" +
                        human_bytes(e.live.astray) +
                        "): their addresses lie in none, so trace and segments do not belong "
                        "together; reserved and idle bytes mean nothing");
  }
  if (e.coverage.contradictions > 0) {
    e.missing.push_back("sense in " + with_commas(e.coverage.contradictions) +
                        " events of the trace, which cannot follow from those before or do not fit "
                        "the segments; they were skipped, and figures may be off");
  }
}

}  // namespace

Result<SnapshotExplanation> explain_snapshot(const Snapshot& snapshot,
                                             const ExplainOptions& options,
                                             const std::string& where) {
  const auto device = TRY(choose_device(snapshot, options, where));
  SnapshotExplanation e;
  e.device = device;
  for (const std::size_t d : snapshot.devices()) {
    if (d != device) e.other_devices.push_back(d);
  }
  const SnapshotHistory history(snapshot, device);
  MemoryMoment moment = history.has(MemoryMoment::kOutOfMemory) ? MemoryMoment::kOutOfMemory
                        : history.has(MemoryMoment::kPeak)      ? MemoryMoment::kPeak
                                                                : MemoryMoment::kEnd;
  if (options.moment) {
    moment = *options.moment;
    if (!history.has(moment)) {
      const bool traced = history.has(MemoryMoment::kPeak);
      return fail(
          ErrorCode::kNotFound,
          std::string(traced ? "no request failed in its trace; its peak and its end are there"
                             : "holds no trace, so only its end can be told; record one "
                               "with torch.cuda.memory._record_memory_history()"),
          where);
    }
  }
  e.coverage = history.coverage();
  e.reserved_peak = history.reserved_peak();
  e.live = history.at(moment);
  e.replay = replay_snapshot(snapshot, device, {{std::nullopt, options.device_memory}, {}});
  try_settings(snapshot, options, e);
  say_why(e);
  name_split_segment(snapshot, e);
  name_growth(snapshot, e);
  advise(snapshot, e);
  name_missing(snapshot, e);
  return e;
}

}  // namespace stoker
