#include <fmt/core.h>

#include <algorithm>

#include "base/counted.h"
#include "base/text.h"
#include "report/html/page.h"
#include "report/model/recording_page.h"
#include "report/text/layout.h"

namespace stoker {
namespace {

using namespace page;

constexpr std::size_t kCourseHolders = 9, kCoursePoints = 500, kListedHolders = 200;
constexpr std::size_t kDrawnSegments = 28, kDrawnParts = 1500, kListedSegments = 200;

Shown share_shown(Bytes part, Bytes whole) {
  const double share = whole.count() > 0 ? part / whole : 0;
  return shown_percent(share);
}

std::string moment_words(const SnapshotExplanation& e) {
  switch (e.live.moment) {
    case MemoryMoment::kPeak:
      return e.coverage.from_start() ? "at the peak" : "at the peak of what was traced";
    case MemoryMoment::kOutOfMemory:
      return "when a request failed";
    case MemoryMoment::kEnd:
      break;
  }
  return "when the snapshot was taken";
}

std::vector<double> numbers(const std::vector<Bytes>& bytes) {
  std::vector<double> list;
  for (const Bytes b : bytes) list.push_back(static_cast<double>(b.count()));
  return list;
}

Json memory_over_the_trace(const SnapshotExplanation& e, const MemoryCourse& course) {
  if (course.event.size() < 2) return {};
  Area plot;
  plot.bytes = true;
  plot.x.label = "event of the trace";
  plot.y.label = "in use, by the line that asked for it";
  for (const std::int64_t event : course.event) plot.at.push_back(static_cast<double>(event + 1));
  for (const HolderCourse& holder : course.holders) {
    if (std::any_of(holder.bytes.begin(), holder.bytes.end(), [](Bytes b) { return b.count(); }))
      plot.series.push_back({holder.where, numbers(holder.bytes)});
  }
  plot.overlay.push_back({"reserved", numbers(course.reserved)});
  if (e.live.event > 0)
    plot.marks = {{"", plot.at.front()}, {moment_words(e), static_cast<double>(e.live.event + 1)}};
  return area(plot);
}

Json holders_bars(const LiveMemory& live) {
  constexpr std::size_t kMost = 12;
  std::vector<Bar> rows;
  for (std::size_t i = 0; i < std::min(kMost, live.holders.size()); ++i) {
    const MemoryHolder& h = live.holders[i];
    rows.push_back({h.where, shown_size(h.bytes),
                    counted(h.blocks, "block") + ", the largest " + human_bytes(h.largest)});
  }
  return bars(rows, "bytes");
}

Json holders_table(const LiveMemory& live) {
  std::vector<std::vector<Cell>> rows;
  const Bytes in_use = live.allocated + live.pending;
  for (std::size_t i = 0; i < std::min(kListedHolders, live.holders.size()); ++i) {
    const MemoryHolder& h = live.holders[i];
    rows.push_back({{h.where, {}},
                    {"", shown_size(h.bytes)},
                    {"", share_shown(h.bytes, in_use)},
                    {"", shown_count(h.blocks)},
                    {"", shown_size(h.largest)}});
  }
  if (rows.empty()) return {};
  return table({{"held by", false}, {"bytes"}, {"share"}, {"blocks"}, {"largest"}}, rows);
}

std::string segment_name(const SegmentFill& s) {
  return fmt::format("{}{}", human_bytes(Bytes(s.size)), s.expandable ? " (expandable)" : "");
}

/// The segments with most idle memory, each with what lies in it.
Json segments_map(const std::vector<SegmentFill>& segments) {
  constexpr double kMebibyte = 1 << 20;
  Lanes plot;
  plot.title = "segments and what lies in them";
  plot.unit = "MiB";
  plot.label_is = "held by";
  plot.kinds = {"in use", "freed, still in use by another stream", "idle"};
  for (const SegmentFill& s : segments) {
    if (plot.lanes.size() >= kDrawnSegments || plot.spans.size() + s.parts.size() > kDrawnParts)
      break;
    for (const SegmentPart& part : s.parts) {
      plot.spans.push_back({static_cast<int>(plot.lanes.size()), static_cast<int>(part.kind),
                            static_cast<double>(part.offset) / kMebibyte,
                            static_cast<double>(part.offset + part.size) / kMebibyte, part.where});
    }
    plot.lanes.push_back(segment_name(s));
  }
  return lanes(plot);
}

Json segments_table(const Snapshot& snapshot, const std::vector<SegmentFill>& segments) {
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < std::min(kListedSegments, segments.size()); ++i) {
    const SegmentFill& s = segments[i];
    const PoolNumber pool = snapshot.pools[s.pool];
    rows.push_back(
        {{fmt::format("{:#x}", s.address), {}},
         {"", shown_size(Bytes(s.size))},
         {"", shown_size(Bytes(s.size - s.idle))},
         {"", shown_size(Bytes(s.idle))},
         {"", share_shown(Bytes(s.idle), Bytes(s.size))},
         {"", shown_size(Bytes(s.largest_idle))},
         {"", shown_count(s.idle_pieces)},
         {s.stream == 0 ? "default" : fmt::format("{:#x}", snapshot.streams[s.stream]), {}},
         {pool == kDefaultPool ? "default" : fmt::format("({}, {})", pool.first, pool.second),
          {}}});
  }
  if (rows.empty()) return {};
  return table({{"segment", false},
                {"size"},
                {"in use"},
                {"idle"},
                {"idle share"},
                {"largest idle piece"},
                {"idle pieces"},
                {"stream", false},
                {"pool", false}},
               rows);
}

Json settings_table(const SnapshotExplanation& e) {
  std::vector<std::vector<Cell>> rows{{{"as it was", {}}, {"", shown_size(e.reserved_peak)}}};
  if (e.reserved_peak_expandable)
    rows.push_back(
        {{"expandable_segments:True", {}}, {"", shown_size(*e.reserved_peak_expandable)}});
  if (e.split_limit) {
    rows.push_back({{fmt::format("max_split_size_mb:{}", e.split_limit->mebibytes), {}},
                    {"", shown_size(e.split_limit->reserved_peak)}});
  }
  if (rows.size() == 1) return {};
  return table({{"PYTORCH_CUDA_ALLOC_CONF", false}, {"reserved at most, by simulation"}}, rows);
}

std::vector<std::string> notes_of(const Diagnostics& findings) {
  std::vector<std::string> notes;
  for (const Diagnostic& d : findings.all()) notes.push_back(d.name + ": " + d.advice);
  return notes;
}

std::string segments_lead(std::size_t count) {
  std::string lead = "Segments are what was asked of CUDA; those with most idle memory first.";
  if (count > kDrawnSegments)
    lead += fmt::format(" The first of {} are drawn.", with_commas(static_cast<int>(count)));
  if (count > kListedSegments) lead += fmt::format(" The table has {} of them.", kListedSegments);
  return lead;
}

}  // namespace

SnapshotPicture picture_of(const SnapshotExplanation& e, const Snapshot& snapshot) {
  std::vector<std::string> holders;
  for (const MemoryHolder& h : e.live.holders) {
    if (holders.size() < kCourseHolders) holders.push_back(h.where);
  }
  SnapshotPicture picture;
  picture.course = memory_course(snapshot, e.device, holders, kCoursePoints);
  picture.segments = segments_at(snapshot, e.device, e.live.event);
  return picture;
}

std::string snapshot_page(const SnapshotExplanation& e, const Snapshot& snapshot,
                          const SnapshotPicture& picture, const std::string& file,
                          const std::string& tool_version) {
  const LiveMemory& live = e.live;
  Page page("explain", file, fmt::format("memory of GPU {} {}", e.device, moment_words(e)));
  if (live.failure && !e.why.empty())
    page.headline(Verdict::kBad, "Out of memory: " + e.why.front(),
                  {e.why.begin() + 1, e.why.end()});
  else
    page.headline(live.failure ? Verdict::kBad : Verdict::kNone,
                  fmt::format("{} allocated, {} reserved, {} idle", human_bytes(live.allocated),
                              human_bytes(live.reserved), human_bytes(live.idle.bytes)),
                  e.why);
  page.tile("Allocated", shown_size(live.allocated), "whole blocks");
  page.tile("Reserved", shown_size(live.reserved), "asked of CUDA");
  page.tile("Idle", shown_size(live.idle.bytes),
            share_shown(live.idle.bytes, live.reserved).text + " of what is reserved");
  page.tile("Largest idle piece", shown_size(live.idle.largest));
  page.tile("Reserved at most", shown_size(e.reserved_peak),
            e.coverage.from_start() ? "" : "a lower bound");
  page.section("What to do", "", {sentences(e.advice), settings_table(e)});
  page.section("Memory over the trace",
               "Whole blocks by the line of code that asked for them, in order of events; the line "
               "is what was reserved.",
               {memory_over_the_trace(e, picture.course)});
  page.section("Who holds it", "The lines whose blocks are in use " + moment_words(e) + ".",
               {holders_bars(live), holders_table(live)});
  page.section("Fragmentation by segment", segments_lead(picture.segments.size()),
               {segments_map(picture.segments), segments_table(snapshot, picture.segments)});
  page.footer("Missing", e.missing);
  page.footer(
      "Trace",
      {counted(e.coverage.events, "event") + ", " + counted(e.coverage.allocations, "allocation") +
       ", " + counted(e.coverage.frees, "free") + ", " + counted(e.coverage.failures, "failure")});
  page.footer("Simulator",
              {!e.replay.not_replayed.empty() ? "not compared: " + e.replay.not_replayed
               : e.replay.identical()
                   ? "repeats all events of the trace"
                   : fmt::format("repeats {} of {} events; then {}", with_commas(e.replay.compared),
                                 with_commas(e.replay.events), e.replay.difference)});
  if (!snapshot.settings_text.empty()) page.footer("Settings", {snapshot.settings_text});
  page.footer("Noted", notes_of(snapshot.findings));
  page.text(snapshot_text(e, snapshot, file));
  return page.html(tool_version);
}

}  // namespace stoker
