#include "report/json/json_parts.h"

namespace stoker {

Json finding_object(const JobFinding& f) {
  return {{"name", f.name},         {"lost_share", f.lost},
          {"evidence", f.evidence}, {"cure", f.cure},
          {"setting", f.setting},   {"gain", f.gain ? figure_object(*f.gain) : Json()},
          {"price", f.price},       {"confidence", name_of(f.confidence)}};
}

Json trace_object(const TraceDiagnosis& d) {
  Json idle = Json::object(), largest = Json::array(), findings = Json::array();
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    idle.append(std::string(name_of(static_cast<IdleCause>(i))), d.idle_by[i]);
  for (const TraceShare& s : d.largest)
    largest.push_back({{"name", s.name}, {"share", s.share}, {"count", s.count}});
  const auto owners = [](const std::vector<TraceOwner>& from, bool modules) {
    Json list = Json::array();
    for (const TraceOwner& o : from) {
      Json owner{
          {"name", o.name}, {"share", o.share}, {"backward", o.backward}, {"count", o.count}};
      if (modules) owner["modules"] = o.modules;
      list.push_back(std::move(owner));
    }
    return list;
  };
  for (const JobFinding& f : d.findings) findings.push_back(finding_object(f));
  return {{"gpu", d.device ? Json(*d.device) : Json()},
          {"seconds", d.seconds},
          {"steps", d.steps},
          {"step_s", d.step_s > 0 ? Json(d.step_s) : Json()},
          {"verdict", d.verdict},
          {"computes", d.compute},
          {"exposed_communication", d.communication},
          {"communication", d.communication_all},
          {"exposed_copies", d.copies},
          {"idle", d.idle},
          {"lost_by", idle},
          {"in_loader", d.loader},
          {"largest", largest},
          {"operators", owners(d.operators, false)},
          {"modules", owners(d.modules, true)},
          {"without_launch", {{"share", d.orphans}, {"count", d.orphan_count}}},
          {"profiler_overhead", d.overhead},
          {"findings", findings},
          {"notes", d.notes}};
}

}  // namespace stoker
