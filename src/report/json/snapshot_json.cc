#include "report/json/json_parts.h"
#include "report/model/recording_report.h"

namespace stoker {
namespace {

Json idle_object(const IdleMemory& idle) {
  return {{"bytes", idle.bytes.count()},
          {"in_empty_segments_bytes", idle.whole.count()},
          {"largest_piece_bytes", idle.largest.count()},
          {"pieces", idle.pieces}};
}

Json stack_of(const Snapshot& snapshot, StackId stack) {
  Json frames = Json::array();
  for (const std::uint32_t id : snapshot.stacks[static_cast<std::size_t>(stack)]) {
    const StackFrame& f = snapshot.frames[id];
    frames.push_back({{"file", f.file}, {"line", f.line}, {"function", f.function}});
  }
  return frames;
}

Json live_object(const LiveMemory& live, const Snapshot& snapshot) {
  Json holders = Json::array();
  for (const MemoryHolder& h : live.holders) {
    holders.push_back({{"where", h.where},
                       {"bytes", h.bytes.count()},
                       {"requested_bytes", h.requested.count()},
                       {"blocks", h.blocks},
                       {"largest_bytes", h.largest.count()},
                       {"stack", stack_of(snapshot, h.stack)}});
  }
  Json json{{"moment", name_of(live.moment)},
            {"event", live.event},
            {"time_us", live.time_us},
            {"allocated_bytes", live.allocated.count()},
            {"reserved_bytes", live.reserved.count()},
            {"requested_bytes", live.requested.count()},
            {"pending_bytes", live.pending.count()},
            {"idle", idle_object(live.idle)},
            {"astray_bytes", live.astray.count()},
            {"holders", std::move(holders)}};
  if (live.failure) {
    json["failure"] = {{"requested_bytes", live.failure->requested.count()},
                       {"asked_bytes", live.failure->asked.count()},
                       {"device_free_bytes", live.failure->device_free.count() < 0
                                                 ? Json(nullptr)
                                                 : Json(live.failure->device_free.count())},
                       {"usable_idle", idle_object(live.failure->usable)},
                       {"where", live.failure->where},
                       {"why", live.failure->why}};
  }
  return json;
}

Json replay_object(const SnapshotReplay& r) {
  return {{"identical", r.identical()},   {"not_replayed", r.not_replayed},
          {"events", r.events},           {"compared", r.compared},
          {"allocations", r.allocations}, {"segments", r.segments},
          {"tie_rule", name_of(r.rule)},  {"same_end", r.same_end},
          {"difference", r.difference},   {"releases_taken_over", r.releases_taken_over}};
}

}  // namespace

Json explain_envelope(const char* kind, const std::string& file, const std::string& tool_version) {
  /// A reader may rely on every key that docs/reference/json.md names for this schema.
  constexpr const char* kExplainSchema = "stoker-explain-1";
  Json json = answer(kExplainSchema, tool_version);
  json["kind"] = kind;
  json["file"] = file;
  return json;
}

std::string snapshot_json(const SnapshotExplanation& e, const Snapshot& snapshot,
                          const std::string& file, const std::string& tool_version) {
  Json json = explain_envelope("snapshot", file, tool_version);
  json["device"] = e.device;
  json["other_devices"] = e.other_devices;
  json["live"] = live_object(e.live, snapshot);
  json["reserved_peak_bytes"] = e.reserved_peak.count();
  json["peak_is_lower_bound"] = e.coverage.events > 0 && !e.coverage.from_start();
  json["trace"] = {{"events", e.coverage.events},
                   {"allocations", e.coverage.allocations},
                   {"frees", e.coverage.frees},
                   {"failures", e.coverage.failures},
                   {"from_start", e.coverage.events > 0 && e.coverage.from_start()},
                   {"blocks_before", e.coverage.blocks_before},
                   {"bytes_before", e.coverage.bytes_before.count()},
                   {"contradictions", e.coverage.contradictions}};
  json["replay"] = replay_object(e.replay);
  if (e.reserved_peak_expandable)
    json["reserved_peak_expandable_bytes"] = e.reserved_peak_expandable->count();
  if (e.split_limit) {
    json["split_limit"] = {{"max_split_size_mb", e.split_limit->mebibytes},
                           {"reserved_peak_bytes", e.split_limit->reserved_peak.count()}};
  }
  json["settings"] = snapshot.settings_text;
  json["why"] = e.why;
  json["advice"] = e.advice;
  json["missing"] = e.missing;
  Json findings = Json::array();
  for (const Diagnostic& d : snapshot.findings.all())
    findings.push_back({{"name", d.name},
                        {"severity", d.severity == Severity::kWarning ? "warning" : "note"},
                        {"count", d.count},
                        {"advice", d.advice}});
  json["diagnostics"] = std::move(findings);
  return answer_text(json);
}

std::string profile_json(const ProfileReport& report) {
  const auto optional = [](const std::optional<Bytes>& bytes) {
    return bytes ? Json(bytes->count()) : Json(nullptr);
  };
  Json json = explain_envelope("profile", report.file, report.tool_version);
  json["trace_events"] = report.reading.events;
  json["repaired_places"] = report.reading.repaired;
  json["damaged_places"] = report.reading.damaged_places;
  json["cut_short"] = report.reading.cut;
  json["device"] = nullptr;
  if (report.time) {
    if (report.time->device) json["device"] = *report.time->device;
    json["time"] = trace_object(*report.time);
  }
  if (!report.memory) return answer_text(json);
  const auto& [memory, s, c] = *report.memory;
  json["device"] = memory.device;
  json["memory_events"] = memory.events.size();
  json["broken_events"] = memory.broken_events;
  json["untimed_events"] = memory.untimed_events;
  json["allocations"] = s.allocations;
  json["frees"] = s.frees;
  json["freed_from_before"] = s.freed_from_before;
  json["kept"] = s.kept;
  json["rise_bytes"] = s.rise.count();
  json["peak_event"] = s.peak_event;
  json["allocated_peak_bytes"] = optional(s.allocated_peak);
  json["reserved_peak_bytes"] = optional(s.reserved_peak);
  json["total_mismatches"] = s.total_mismatches;
  json["simulator"] = {
      {"allocations", c.allocations},    {"same_size", c.same_size}, {"with_total", c.with_total},
      {"same_total", c.same_total},      {"reuses", c.reuses},       {"same_reuse", c.same_reuse},
      {"late_segments", c.late_segments}};
  return answer_text(json);
}

}  // namespace stoker
