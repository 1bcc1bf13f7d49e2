// From the values of the pickle to a Snapshot. The keys are those of PyTorch's
// torch/csrc/cuda/Module.cpp and memory_snapshot.cpp.

#include <algorithm>
#include <map>
#include <new>

#include "base/text.h"
#include "snapshot/pickle.h"
#include "snapshot/snapshot.h"
#include "snapshot/snapshot_fields.h"
#include "snapshot/snapshot_settings.h"
#include "snapshot/stack_table.h"

namespace stoker {
namespace {

/// Streams and pools are numbered with 16 bits.
constexpr std::size_t kMaxLanes = 60'000;
constexpr std::int64_t kMaxDevices = 1024;
/// Most bytes of all sizes of a file together: no sum of some of them can overflow. A trace of ten
/// million allocations of 100 GiB stays below.
constexpr std::int64_t kMaxSizes = std::int64_t{1} << 60;

/// Bytes of a file for each segment, block or event. No dict of two keys takes fewer (3 bytes, at
/// least 2 for each key and 1 for each value); PyTorch writes one of more keys for each, none
/// twice.
constexpr std::size_t kMinEntryBytes = 8;

/// One cudaMalloc of the small pool (c10/cuda/CUDACachingAllocator.cpp, kSmallBuffer).
constexpr std::int64_t kSmallSegment = 2 << 20;

using snapshot_fields::expect;
using snapshot_fields::Fields;
using snapshot_fields::kMaxAddress;
using snapshot_fields::kMaxSize;
using snapshot_fields::OddEntry;
using snapshot_fields::Refusal;
using snapshot_fields::refuse;

constexpr std::pair<std::string_view, TraceAction> kActions[] = {
    {"alloc", TraceAction::kAlloc},
    {"free_requested", TraceAction::kFreeRequested},
    {"free_completed", TraceAction::kFreeCompleted},
    {"segment_alloc", TraceAction::kSegmentAlloc},
    {"segment_free", TraceAction::kSegmentFree},
    {"segment_map", TraceAction::kSegmentMap},
    {"segment_unmap", TraceAction::kSegmentUnmap},
    {"snapshot", TraceAction::kSnapshot},
    {"oom", TraceAction::kOutOfMemory}};

/// Hands out small numbers for values, in order of appearance.
template <class Value>
class Numbering {
 public:
  explicit Numbering(const char* what) : what_(what) {}
  std::uint16_t operator()(const Value& value) {
    if (!numbers_.empty() && values_[last_] == value) return last_;
    const auto [entry, is_new] =
        numbers_.try_emplace(value, static_cast<std::uint16_t>(values_.size()));
    if (is_new) {
      if (values_.size() >= kMaxLanes)
        throw Refusal{ErrorCode::kBadInput, std::string("holds more than 60,000 ") + what_};
      values_.push_back(value);
    }
    return last_ = entry->second;
  }
  std::vector<Value> take() { return std::move(values_); }

 private:
  const char* what_;
  std::map<Value, std::uint16_t> numbers_;
  std::vector<Value> values_;
  std::uint16_t last_ = 0;
};

/// The keys of what there may be millions of, looked up once.
struct HotKeys {
  explicit HotKeys(const Pickle& pickle) {
    const auto number = [&](std::string_view key) {
      constexpr std::uint32_t kNowhere = 0xffffffff;
      return pickle.key_id(key).value_or(kNowhere);
    };
    action = number("action"), addr = number("addr"), size = number("size");
    stream = number("stream"), time = number("time_us"), frames = number("frames");
    pool = number("pool_id"), segment_pool = number("segment_pool_id");
    device_free = number("device_free");
  }
  std::uint32_t action, addr, size, stream, time, frames, pool, segment_pool, device_free;
};

class Reader {
 public:
  Reader(const Pickle& pickle, std::size_t file_bytes)
      : pickle_(pickle), keys_(pickle), entries_left_(file_bytes / kMinEntryBytes) {}

  Snapshot read() {
    const PickleValue root = pickle_.root();
    (void)pools_(kDefaultPool);
    if (root.is(PickleKind::kList) || root.is(PickleKind::kTuple)) read_list(root);
    else read_dict(root);
    say_what_is_missing();
    if (snapshot_.segments.empty() && snapshot_.devices().empty()) {
      if (first_odd_) throw *first_odd_;
      throw Refusal{ErrorCode::kUnsupported,
                    "holds no segments and no traces: either nothing was allocated on a GPU, or "
                    "another allocator back end (cudaMallocAsync, a pluggable one) was at work, "
                    "which writes none"};
    }
    snapshot_.streams = streams_.take();
    snapshot_.pools = pools_.take();
    stacks_.move_into(snapshot_);
    return std::move(snapshot_);
  }

 private:
  void read_dict(const PickleValue& root) {
    if (!root.is(PickleKind::kDict)) {
      throw Refusal{ErrorCode::kBadInput,
                    "holds " + std::string(name_of(root.kind())) + " where a snapshot is a dict"};
    }
    read_allocator_settings(root, snapshot_);
    const Fields fields{root, ""};
    const auto traces = root.find("device_traces");
    if (!traces || root.find("segments")) {
      const auto segments = fields.need("segments");
      each_odd([&] { read_segments(expect(segments, PickleKind::kList, "segments")); });
    }
    if (!traces) return;
    each_odd([&] { read_traces(expect(*traces, PickleKind::kList, "device_traces")); });
    // PyTorch writes the settings behind the traces: without them the last trace lacks its end.
    if (pickle_.cut() && !root.find("allocator_settings") && !snapshot_.segments.empty() &&
        !snapshot_.traces.empty() && !snapshot_.traces.back().empty()) {
      events_cut_ = static_cast<std::int64_t>(snapshot_.traces.back().size());
      snapshot_.traces.back().clear();
    }
  }

  /// What the function refuses is left out and counted, unless it is more than one entry of a list.
  template <class Function>
  void each_odd(const Function& function) {
    try {
      function();
    } catch (const OddEntry& odd) {
      if (!first_odd_) first_odd_ = odd;
      ++odd_entries_;
    }
  }
  void say_what_is_missing();

  /// torch.cuda.memory_snapshot() is the list of segments alone, and so are snapshots of PyTorch
  /// before 2.0; a list of events is one device's trace, a list of such lists those of all devices.
  void read_list(const PickleValue& root) {
    const PickleValue first = root.size() > 0 ? root[0] : root;
    // A function that returns more beside the snapshot hands it on in a tuple or a list.
    if (first.is(PickleKind::kDict) && (first.find("segments") || first.find("device_traces")))
      return read_dict(first);
    if (first.is(PickleKind::kList) && root.size() > 0) {
      const bool dicts = first.size() > 0 && first[0].is(PickleKind::kDict);
      const bool segments = dicts && (first[0].find("total_size") || first[0].find("blocks"));
      return segments ? read_segments(first) : read_traces(root);
    }
    if (first.is(PickleKind::kDict) && first.find("action")) {
      snapshot_.traces.resize(1);
      return read_trace(root, 0);
    }
    read_segments(root);
  }

  void read_segments(const PickleValue& list);
  SnapshotSegment read_segment(const Fields& fields);
  bool is_small(const Fields& fields, std::int64_t size);
  void read_blocks(const PickleValue& list, const Fields& owner, SnapshotSegment& segment);
  SnapshotBlock read_block(const Fields& fields, std::int64_t next);
  void check_blocks(const SnapshotSegment& segment);
  void read_traces(const PickleValue& list);
  void read_trace(const PickleValue& trace, std::size_t device);
  TraceEvent read_event(const PickleValue& entry, std::size_t device, std::size_t i);
  std::int64_t device_free(const PickleValue& event);
  TraceAction action_of(const PickleValue& value, const Fields& fields);

  std::uint16_t pool_of(const std::optional<PickleValue>& value) {
    if (!value || value->is(PickleKind::kNone)) return 0;
    const bool pair = value->size() == 2 && !value->is(PickleKind::kDict);
    const auto first = pair ? (*value)[0].as_int() : std::nullopt;
    const auto second = pair ? (*value)[1].as_int() : std::nullopt;
    if (!first || !second) refuse("pool_id or segment_pool_id", "is not a pair of ints");
    return pools_({*first, *second});
  }
  void count(std::int64_t bytes) {
    total_ += bytes;
    if (total_ > kMaxSizes)
      throw Refusal{ErrorCode::kBadInput, "holds sizes that no run can add up to"};
  }

  /// Entries of a list. A shared value is in the pickle once, but an entry at every reference.
  std::size_t count_entries(const PickleValue& list) {
    if (list.size() > entries_left_) {
      throw Refusal{
          ErrorCode::kBadInput,
          "refers to the same segments, blocks or events so often that they are more than "
          "a file of its size can hold; no memory snapshot does"};
    }
    entries_left_ -= list.size();
    return list.size();
  }

  const Pickle& pickle_;
  std::int64_t total_ = 0;
  HotKeys keys_;
  std::size_t entries_left_;
  std::optional<OddEntry> first_odd_;
  std::int64_t odd_entries_ = 0, events_cut_ = 0;
  Snapshot snapshot_;
  Numbering<std::int64_t> streams_{"streams"};
  Numbering<PoolNumber> pools_{"memory pools"};
  StackTable stacks_;
};

void Reader::say_what_is_missing() {
  if (first_odd_) {
    snapshot_.findings.add("unreadable_entries", Severity::kWarning,
                           "segments, blocks or events that could not be read are left out; the "
                           "first: " +
                               first_odd_->message,
                           odd_entries_);
  }
  if (!pickle_.cut()) return;
  const std::string trace =
      events_cut_ == 0 ? ""
                       : "; the trace lacks its end, so that its " + with_commas(events_cut_) +
                             " events are left out and only the moment of the snapshot is told";
  snapshot_.findings.add("cut_short", Severity::kWarning,
                         "the file ends early (a full disk, a broken copy): what came before is "
                         "told, and sums are lower bounds" +
                             trace);
}

// Segments.

void Reader::read_segments(const PickleValue& list) {
  snapshot_.segments.reserve(count_entries(list));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "segments[" + std::to_string(i) + "]";
    each_odd([&] {
      const Fields fields{expect(list[i], PickleKind::kDict, place), place};
      snapshot_.segments.push_back(read_segment(fields));
      check_blocks(snapshot_.segments.back());
    });
  }
  std::stable_sort(
      snapshot_.segments.begin(), snapshot_.segments.end(),
      [](const SnapshotSegment& a, const SnapshotSegment& b) { return a.address < b.address; });
  const SnapshotSegment* previous = nullptr;
  for (const SnapshotSegment& segment : snapshot_.segments) {
    if (previous && previous->device == segment.device &&
        previous->address + previous->size > segment.address) {
      snapshot_.findings.add("segments_overlap", Severity::kWarning,
                             "segments of the snapshot overlap: its addresses are not real ones");
    }
    previous = &segment;
  }
}

SnapshotSegment Reader::read_segment(const Fields& fields) {
  SnapshotSegment segment;
  segment.device = fields.get_int("device", 0);
  if (segment.device < 0 || segment.device >= kMaxDevices)
    refuse(fields.name("device"), "is " + std::to_string(segment.device));
  segment.address = fields.need_int("address");
  fields.check_address("address", segment.address);
  segment.size = fields.need_size("total_size");
  count(segment.size);
  segment.allocated = fields.get_int("allocated_size", 0);
  segment.stream = streams_(fields.get_int("stream", 0));
  segment.pool = pool_of(fields.dict.find("segment_pool_id"));
  segment.small = is_small(fields, segment.size);
  if (const auto expandable = fields.dict.find("is_expandable"))
    segment.expandable = expandable->as_bool().value_or(false);
  read_blocks(expect(fields.need("blocks"), PickleKind::kList, fields.name("blocks")), fields,
              segment);
  return segment;
}

/// The pool of a segment; a segment of the small pool has 2 MiB, of the large pool more.
bool Reader::is_small(const Fields& fields, std::int64_t size) {
  const auto type = fields.dict.find("segment_type");
  if (type && type->as_string() == "small") return true;
  if (type && type->as_string() == "large") return false;
  snapshot_.findings.add("no_segment_type", Severity::kNote,
                         "a segment does not say its pool (segment_type); its size tells");
  return size <= kSmallSegment;
}

void Reader::read_blocks(const PickleValue& list, const Fields& owner, SnapshotSegment& segment) {
  segment.blocks.reserve(count_entries(list));
  std::int64_t next = segment.address;  // older snapshots give no address of a block
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = owner.name("blocks[" + std::to_string(i) + "]");
    each_odd([&] {
      const Fields fields{expect(list[i], PickleKind::kDict, place), place};
      segment.blocks.push_back(read_block(fields, next));
      next = segment.blocks.back().address + segment.blocks.back().size;
    });
  }
}

SnapshotBlock Reader::read_block(const Fields& fields, std::int64_t next) {
  SnapshotBlock block;
  block.size = fields.need_size("size");
  block.address = fields.get_int("address", next);
  fields.check_address("address", block.address);
  count(block.size);
  const auto state = fields.need("state").as_string().value_or("");
  if (state == "active_allocated") {
    block.state = SnapshotBlockState::kAllocated;
  } else if (state == "active_pending_free" || state == "active_awaiting_free") {
    block.state = SnapshotBlockState::kPendingFree;
  } else if (state != "inactive") {
    refuse(fields.name("state"), "is \"" + std::string(state.substr(0, 40)) +
                                     "\", not active_allocated, active_pending_free, "
                                     "active_awaiting_free or inactive");
  }
  // Before PyTorch 2.1 blocks tell by their history, newest first (_memory_viz.py).
  const auto history = fields.dict.find("history");
  const bool old = history && history->size() > 0 && (*history)[0].is(PickleKind::kDict);
  std::optional<Fields> newest;
  if (old) newest.emplace(Fields{(*history)[0], fields.name("history[0]")});
  const Fields& told = newest ? *newest : fields;
  block.requested = block.state == SnapshotBlockState::kInactive
                        ? 0
                        : told.get_int(old ? "real_size" : "requested_size", block.size);
  if (block.requested < 0 || block.requested > kMaxSize)
    refuse(fields.name("requested_size"), "cannot be");
  count(block.requested);
  block.stack = stacks_.of(told.dict.find(keys_.frames));
  return block;
}

void Reader::check_blocks(const SnapshotSegment& segment) {
  std::int64_t sum = 0, allocated = 0;
  bool adjacent = true, fits = true;
  for (const SnapshotBlock& block : segment.blocks) {
    adjacent = adjacent && block.address == segment.address + sum;
    fits = fits && block.requested >= 0 && block.requested <= block.size;
    sum += block.size;
    if (block.state == SnapshotBlockState::kAllocated) allocated += block.size;
  }
  const auto note = [this](std::string_view name, std::string_view advice) {
    snapshot_.findings.add(name, Severity::kWarning, advice);
  };
  if (sum != segment.size)
    note("segment_not_filled", "the blocks of a segment do not add up to its size");
  if (!adjacent) note("blocks_apart", "the blocks of a segment do not follow one another");
  if (!fits) note("request_exceeds_block", "a block is smaller than what was requested of it");
  if (allocated != segment.allocated)
    note("segment_sum_differs", "allocated_size of a segment is not the sum of its blocks");
}

// Traces.

void Reader::read_traces(const PickleValue& list) {
  if (list.size() > static_cast<std::size_t>(kMaxDevices))
    refuse("device_traces", "holds more than 1,024 devices");
  snapshot_.traces.resize(list.size());
  for (std::size_t d = 0; d < list.size(); ++d) {
    const std::string place = "device_traces[" + std::to_string(d) + "]";
    each_odd([&] { read_trace(expect(list[d], PickleKind::kList, place), d); });
  }
}

void Reader::read_trace(const PickleValue& trace, std::size_t device) {
  snapshot_.traces[device].reserve(count_entries(trace));
  for (std::size_t i = 0; i < trace.size(); ++i)
    each_odd([&] { snapshot_.traces[device].push_back(read_event(trace[i], device, i)); });
}

TraceEvent Reader::read_event(const PickleValue& entry, std::size_t device, std::size_t i) {
  // The place is only put together when something is wrong: there may be millions.
  const auto fields = [&] {
    return Fields{entry,
                  "device_traces[" + std::to_string(device) + "][" + std::to_string(i) + "]"};
  };
  if (!entry.is(PickleKind::kDict)) refuse(fields().place, "is not a dict");
  const auto need = [&](std::uint32_t key, std::string_view name) {
    const auto value = entry.find(key);
    const auto whole = value ? value->as_int() : std::nullopt;
    return whole ? *whole : fields().need_int(name);
  };
  const auto optional = [&](std::uint32_t key) {
    const auto value = entry.find(key);
    return value ? value->as_int().value_or(0) : 0;
  };
  TraceEvent event;
  const auto action = entry.find(keys_.action);
  event.action = action_of(action ? *action : fields().need("action"), {entry, "device_traces"});
  if (event.action != TraceAction::kOther) {
    const bool oom = event.action == TraceAction::kOutOfMemory;
    event.size = need(keys_.size, "size");
    event.address = oom ? device_free(entry) : need(keys_.addr, "addr");
    if ((event.address < 0 && !oom) || event.address > kMaxAddress)
      fields().check_address(oom ? "device_free" : "addr", event.address);
    if (event.size < 0 || event.size > kMaxSize)
      refuse(fields().name("size"), "is " + std::to_string(event.size) + " bytes, which cannot be");
    count(event.size);
  }
  event.stream = streams_(optional(keys_.stream));
  event.time_us = optional(keys_.time);
  const auto pool = entry.find(keys_.pool);
  event.pool = pool_of(pool ? pool : entry.find(keys_.segment_pool));
  event.stack = stacks_.of(entry.find(keys_.frames));
  return event;
}

/// Older PyTorch does not say what the device had free when a request failed.
std::int64_t Reader::device_free(const PickleValue& event) {
  const auto value = event.find(keys_.device_free);
  const auto bytes = value ? value->as_int() : std::nullopt;
  if (bytes && *bytes >= 0) return *bytes;
  snapshot_.findings.add("no_device_free", Severity::kNote,
                         "a failed request does not say what the device had free (device_free)");
  return kUnknownFree;
}

TraceAction Reader::action_of(const PickleValue& value, const Fields& fields) {
  const auto name = value.as_string();
  if (!name) refuse(fields.name("action"), "is " + std::string(name_of(value.kind())));
  for (const auto& [known, action] : kActions) {
    if (known == *name) return action;
  }
  snapshot_.findings.add("unknown_action", Severity::kNote,
                         "the trace holds entries that are no allocator events; they are skipped");
  return TraceAction::kOther;
}

}  // namespace

Result<Snapshot> parse_snapshot(std::string content, const std::string& where) {
  try {
    const std::size_t file_bytes = content.size();
    const auto pickle = TRY(Pickle::parse(std::move(content), where));
    return Reader(pickle, file_bytes).read();
  } catch (const Refusal& refusal) {
    return fail(refusal.code, refusal.message, where);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kIo, "does not fit into this machine's memory; use a larger one", where);
  }
}

}  // namespace stoker
