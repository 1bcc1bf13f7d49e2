#include "report/json/json_parts.h"
#include "report/model/recording_report.h"

namespace stoker {
namespace {

Json seconds_or_null(double seconds) { return seconds > 0 ? Json(seconds) : Json(); }

Json rank_object(const RankShares& r) {
  Json findings = Json::array();
  for (const JobFinding& f : r.findings) findings.push_back(finding_object(f));
  return {{"rank", r.rank},
          {"file", r.file},
          {"seconds", r.seconds},
          {"steps", r.steps},
          {"step_s", seconds_or_null(r.step_s)},
          {"computes", r.compute},
          {"waits", r.waiting},
          {"transfers", r.transfer},
          {"other_communication", r.other_communication},
          {"exposed_copies", r.copies},
          {"idle", r.idle},
          {"waiting_s", r.waiting_all_s},
          {"transfer_s", r.transfer_all_s},
          {"collectives", r.collectives},
          {"last_at", r.last_at},
          {"behind_s", r.behind_s},
          {"share_of_all_waiting", r.blamed},
          {"findings", findings}};
}

Json straggler_object(const Straggler& s) {
  Json causes = Json::array();
  for (const Straggler::Cause& cause : s.causes)
    causes.push_back({{"does", name_of_rank_work(cause.work)}, {"more_s", cause.more_s}});
  return {{"rank", s.rank}, {"behind_s", s.behind_s}, {"does_more", causes}};
}

}  // namespace

std::string ranks_json(const RanksReport& report) {
  const RanksDiagnosis& d = report.diagnosis;
  Json json = explain_envelope("ranks", report.source, report.tool_version);
  json["device"] = nullptr;
  Json job = Json::object();
  job["world_size"] = d.world_size ? Json(*d.world_size) : Json();
  Json missing = Json::array(), ranks = Json::array(), kinds = Json::array(),
       findings = Json::array();
  for (const std::int64_t rank : d.missing) missing.push_back(rank);
  for (const RankShares& rank : d.ranks) ranks.push_back(rank_object(rank));
  for (const CollectiveTimes& k : d.kinds)
    kinds.push_back({{"kind", k.kind},
                     {"count", k.count},
                     {"transfer_s", k.transfer_s},
                     {"waiting_s", k.waiting_s},
                     {"last_most_often", k.often_last},
                     {"of_them", k.of_them}});
  for (const JobFinding& f : d.findings) findings.push_back(finding_object(f));
  job["missing_ranks"] = std::move(missing);
  job["verdict"] = d.verdict;
  job["per_step"] = d.per_step;
  job["step_s"] = seconds_or_null(d.step_s);
  job["computes"] = d.compute;
  job["waits"] = d.waiting;
  job["transfers"] = d.transfer;
  job["exposed_copies"] = d.copies;
  job["idle"] = d.idle;
  job["straggler"] = d.straggler ? straggler_object(*d.straggler) : Json();
  job["ranks"] = std::move(ranks);
  job["collectives"] = std::move(kinds);
  job["matched_collectives"] = d.matched;
  job["unmatched_collectives"] = d.alone;
  job["sends_and_receives"] = d.point_to_point;
  job["findings"] = std::move(findings);
  job["notes"] = d.notes;
  json["job"] = std::move(job);
  return answer_text(json);
}

}  // namespace stoker
