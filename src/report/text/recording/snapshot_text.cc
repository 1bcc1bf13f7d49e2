#include <fmt/core.h>

#include "base/counted.h"
#include "base/text.h"
#include "report/model/recording_report.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace layout;

/// Lines of code that are listed; the others are one line.
constexpr std::size_t kHolders = 12;

std::string share_of(Bytes part, Bytes whole) {
  return whole.count() > 0 ? percent(part / whole) : "-";
}

std::string moment_of(const SnapshotExplanation& e) {
  const LiveMemory& live = e.live;
  if (live.moment == MemoryMoment::kEnd) return "when the snapshot was taken";
  const bool cut = !e.coverage.from_start();
  const std::string what = live.moment != MemoryMoment::kPeak ? "when a request failed"
                           : cut ? "at the peak of what was traced, a lower bound of the run's"
                                 : "at the peak";
  if (live.event < 0) return what + " (at the beginning of the trace)";
  return what + fmt::format(" (event {} of {})", with_commas(live.event + 1),
                            with_commas(e.coverage.events));
}

std::string holders_table(const LiveMemory& live) {
  const Bytes in_use = live.allocated + live.pending;
  std::vector<std::vector<std::string>> rows{{"held by", "bytes", "share", "blocks", "largest"}};
  MemoryHolder others;
  for (std::size_t i = 0; i < live.holders.size(); ++i) {
    const MemoryHolder& h = live.holders[i];
    if (i >= kHolders) {
      others.bytes += h.bytes;
      others.blocks += h.blocks;
      others.largest = std::max(others.largest, h.largest);
      continue;
    }
    rows.push_back({h.where, human_bytes(h.bytes), share_of(h.bytes, in_use), with_commas(h.blocks),
                    human_bytes(h.largest)});
  }
  if (others.blocks > 0) {
    rows.push_back({fmt::format("({} other lines)", live.holders.size() - kHolders),
                    human_bytes(others.bytes), share_of(others.bytes, in_use),
                    with_commas(others.blocks), human_bytes(others.largest)});
  }
  return rows.size() > 1 ? table(rows, {0}) : "  nothing is held\n";
}

std::string replay_line(const SnapshotReplay& r) {
  if (!r.not_replayed.empty()) return "not compared: " + r.not_replayed;
  if (r.identical()) {
    return fmt::format(
        "repeats all {} events: {} and {} at the same places, the same blocks at the end",
        with_commas(r.events), counted(r.allocations, "allocation"),
        counted(r.segments, "segment"));
  }
  return fmt::format("repeats {} of {} events; then {}", with_commas(r.compared),
                     with_commas(r.events), r.difference);
}

std::string trace_line(const SnapshotExplanation& e) {
  if (e.coverage.events == 0) return "none";
  return fmt::format("{} {}: {}, {}, {}", counted(e.coverage.events, "event"),
                     e.coverage.from_start() ? "from an empty allocator on" : "from mid-run on",
                     counted(e.coverage.allocations, "allocation"),
                     counted(e.coverage.frees, "free"), counted(e.coverage.failures, "failure"));
}

}  // namespace

std::string snapshot_text(const SnapshotExplanation& e, const Snapshot& snapshot,
                          const std::string& file) {
  const LiveMemory& live = e.live;
  std::string text = fmt::format("{}: GPU {} {}\n\n", file, e.device, moment_of(e));
  text += fmt::format("{} allocated, {} reserved, {} idle ({})\n\n", human_bytes(live.allocated),
                      human_bytes(live.reserved), human_bytes(live.idle.bytes),
                      share_of(live.idle.bytes, live.reserved));
  text += holders_table(live) + "\n";
  text += labelled("Why", e.why);
  text += labelled("Do", e.advice);
  text += labelled("Missing", e.missing);
  const bool cut = e.coverage.events > 0 && !e.coverage.from_start();
  text +=
      labelled("Trace", {trace_line(e), cut ? "reserved " + human_bytes(e.reserved_peak) +
                                                  " or more: a lower bound, since the trace "
                                                  "lacks the beginning"
                                            : "reserved at most " + human_bytes(e.reserved_peak)});
  text += labelled("Simulator", {replay_line(e.replay)});
  if (!snapshot.settings_text.empty()) text += labelled("Settings", {snapshot.settings_text});
  if (!e.other_devices.empty()) {
    std::string others;
    for (const std::size_t d : e.other_devices)
      others += (others.empty() ? "" : ", ") + std::to_string(d);
    text += labelled("Also here", {"GPU " + others + " (--device)"});
  }
  return text + diagnostics(snapshot.findings);
}

std::string kineto_text(const ProfileMemory& profile, const std::string& file) {
  const auto& [memory, s, c] = profile;
  std::string text =
      fmt::format("{}: memory events of GPU {}, {} of {} events\n\n", file, memory.device,
                  with_commas(static_cast<std::int64_t>(memory.events.size())),
                  with_commas(memory.reading.events));
  if (s.allocated_peak && s.reserved_peak) {
    const Bytes idle = *s.reserved_peak - *s.allocated_peak;
    text += fmt::format("At most {} allocated, {} reserved, {} idle ({})\n",
                        human_bytes(*s.allocated_peak), human_bytes(*s.reserved_peak),
                        human_bytes(idle), share_of(idle, *s.reserved_peak));
  } else {
    text += "What is allocated in all is not in the trace, only how it changes\n";
  }
  text += fmt::format("At most {} more than when the trace begins, after memory event {}\n\n",
                      human_bytes(s.rise), with_commas(s.peak_event + 1));
  text += labelled(
      "Trace", {counted(s.allocations, "allocation") + ", " + counted(s.frees, "free"),
                fmt::format("{} of blocks from before ({})", counted(s.freed_from_before, "free"),
                            human_bytes(s.bytes_from_before)),
                counted(s.kept, "block") + " kept"});
  std::vector<std::string> simulator{
      fmt::format("hands out blocks of the traced size for {} of {} allocations",
                  with_commas(c.same_size), with_commas(c.allocations)),
      counted(c.late_segments, "new segment") + " once at rest"};
  if (c.with_total > 0) {
    simulator.push_back(fmt::format("moves as Total Allocated does in {} of {} events",
                                    with_commas(c.same_total), with_commas(c.with_total)));
  }
  text += labelled("Simulator", simulator);
  std::vector<std::string> missing;
  if (!s.reserved_peak)
    missing.push_back("totals: traces of this age give the bytes of each event only");
  missing.push_back(
      "who held it: a profile's memory events carry no stacks; take a snapshot with "
      "torch.cuda.memory._dump_snapshot");
  if (memory.reading.repaired > 0)
    missing.push_back(
        fmt::format("what stood in {} places that were no JSON (inf, NaN, bad escapes)",
                    with_commas(memory.reading.repaired)));
  if (memory.reading.cut)
    missing.push_back(
        "the end of the trace: the file ends early (a full disk, a broken copy); the peak is a "
        "lower bound");
  if (memory.reading.damaged_places > 0)
    missing.push_back(fmt::format("what stood in {} and is no JSON at all, passed over",
                                  counted(memory.reading.damaged_places, "place")));
  if (memory.untimed_events > 0)
    missing.push_back(fmt::format("the time of {}: the order of the file stands for it",
                                  counted(memory.untimed_events, "event")));
  if (memory.broken_events > 0)
    missing.push_back(counted(memory.broken_events, "memory event") + " of no or absurd bytes");
  if (memory.other_devices > 0)
    missing.push_back(
        fmt::format("{} memory events of other GPUs: --device", with_commas(memory.other_devices)));
  return text + labelled("Missing", missing);
}

}  // namespace stoker
